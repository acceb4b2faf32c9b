UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
WHERE m.version = row.version
SET m.embedding = row.vector.embedding,
    m.embedding_model = row.vector.embedding_model,
    m.token_vectors = row.vector.token_vectors
