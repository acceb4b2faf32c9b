MATCH (m:Memory)
WHERE m.embedding IS NULL OR coalesce(m.embedding_model, '') <> $model
WITH m LIMIT $limit
RETURN
/*record*/
