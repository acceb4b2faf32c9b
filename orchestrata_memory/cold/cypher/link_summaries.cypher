// Both ways: the summary knows its sources, each source its summaries. Gives what could be
// linked.
UNWIND $rows AS row
MATCH (m:Memory {key: row.key})
MATCH (n:Memory {key: row.id})
MERGE (m)-[:DERIVED_FROM]->(n)
MERGE (n)-[:SUMMARIZED_BY]->(m)
RETURN row.key, row.id
