// The filters hold again: a memory may have changed since its key was found.
UNWIND $keys AS key
MATCH (m:Memory {key: key})
WHERE /*scope*/ AND /*readable*/
RETURN collect([
/*record*/,
m.terms,
CASE WHEN $vector IS NOT NULL AND /*sound*/
     THEN vector.similarity.cosine(m.embedding, $vector) END,
m.token_vectors,
m.embedding_model
])
