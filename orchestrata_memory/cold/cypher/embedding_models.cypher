MATCH (m:Memory)
WHERE m.embedding IS NOT NULL AND m.embedding_model IS NOT NULL
RETURN m.embedding_model, count(m)
