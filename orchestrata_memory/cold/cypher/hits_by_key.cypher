// The filters hold again: a memory may have changed since its key was found.
UNWIND $keys AS key
MATCH (m:Memory {key: key})
WHERE /*scope*/ AND /*readable*/
RETURN
/*record*/,
m.terms,
CASE WHEN $vector IS NOT NULL AND size(m.embedding) = $dimension
       AND any(x IN m.embedding WHERE x <> 0.0)
     THEN vector.similarity.cosine(m.embedding, $vector) END,
m.token_vectors,
m.embedding_model
