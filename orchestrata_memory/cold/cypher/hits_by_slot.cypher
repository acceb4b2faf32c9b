UNWIND $slots AS slot
MATCH (m:Memory {slot: slot})
RETURN
/*record*/,
m.terms,
CASE WHEN $vector IS NOT NULL AND size(m.embedding) = $dimension
       AND any(x IN m.embedding WHERE x <> 0.0)
     THEN vector.similarity.cosine(m.embedding, $vector) END,
m.token_vectors,
m.embedding_model
