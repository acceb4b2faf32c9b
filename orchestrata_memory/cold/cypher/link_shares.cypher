UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Volk {id: row.id})
MERGE (m)-[:SHARED_WITH]->(n)
