UNWIND $slots AS slot
MATCH (m:Memory {slot: slot})
RETURN collect([
/*record*/,
m.terms,
CASE WHEN $vector IS NOT NULL AND /*sound*/
     THEN vector.similarity.cosine(m.embedding, $vector) END,
m.token_vectors,
m.embedding_model
])
