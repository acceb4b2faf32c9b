[m.key, m.version, m.updated_at, m.embedding_model]
