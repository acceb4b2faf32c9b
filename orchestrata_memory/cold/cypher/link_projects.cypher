UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Project {id: row.id})
MERGE (m)-[:PART_OF]->(n)
