UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Task {id: row.id})
MERGE (m)-[:RELATES_TO]->(n)
