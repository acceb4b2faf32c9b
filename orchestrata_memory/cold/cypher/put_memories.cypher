// Replace all properties. A vector stays where the new version brings none and its text is the
// same.
UNWIND $rows AS row
MERGE (m:Memory {key: row.key})
WITH m, row,
     row.vector IS NULL AND m.content_hash = row.properties.content_hash AS same,
     m.embedding AS embedding, m.embedding_model AS model, m.token_vectors AS tokens
SET m = row.properties
SET m.embedding = CASE WHEN same THEN embedding ELSE row.vector.embedding END,
    m.embedding_model = CASE WHEN same THEN model ELSE row.vector.embedding_model END,
    m.token_vectors = CASE WHEN same THEN tokens ELSE row.vector.token_vectors END
