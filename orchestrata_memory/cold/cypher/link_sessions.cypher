UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Session {id: row.id})
MERGE (m)-[:BELONGS_TO]->(n)
