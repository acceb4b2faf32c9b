UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Volk {id: row.id})
MERGE (m)-[:CREATED_BY]->(n)
