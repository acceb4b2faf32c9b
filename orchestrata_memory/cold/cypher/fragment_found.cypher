[m.key, m.version, m.updated_at, m.embedding_model, CASE WHEN $vector IS NOT NULL AND /*sound*/
     THEN vector.similarity.cosine(m.embedding, $vector) END]
