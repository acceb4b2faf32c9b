UNWIND $keys AS key
MATCH (m:Memory {key: key})-[r:DERIVED_FROM]->(n:Memory)
OPTIONAL MATCH (n)-[back:SUMMARIZED_BY]->(m)
DELETE r, back
