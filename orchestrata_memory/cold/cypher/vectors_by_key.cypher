UNWIND $keys AS key
MATCH (m:Memory {key: key})
WHERE m.embedding IS NOT NULL
RETURN m.key, m.version, m.embedding_model, m.embedding, m.token_vectors
