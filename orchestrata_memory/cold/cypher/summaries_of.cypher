UNWIND $keys AS key
MATCH (source:Memory {key: key})-[:SUMMARIZED_BY]->(m:Memory)
WITH key, m
ORDER BY m.created_at, m.key
RETURN key,
/*record*/
