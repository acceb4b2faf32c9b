UNWIND $keys AS key
MATCH (from:Memory {key: key})-[:SUMMARIZED_BY|DERIVED_FROM]-(m:Memory)
WHERE /*readable*/ AND NOT m.key IN $seen
WITH m, min(key) AS key
ORDER BY m.created_at DESC, m.key
LIMIT $limit
RETURN key, [],
/*record*/
