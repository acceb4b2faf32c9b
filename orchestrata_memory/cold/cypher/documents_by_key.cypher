// The filters hold again: a memory may have changed since it was found.
UNWIND $keys AS key
MATCH (m:Memory {key: key})
WHERE /*scope*/ AND /*readable*/
RETURN collect([/*record*/, m.terms, m.embedding, m.token_vectors, m.embedding_model])
