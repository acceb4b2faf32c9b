// Guarded by the version, as memories are.
UNWIND $rows AS row
MERGE (a:MemoryAnchor {key: 'delegation\n' + row.delegator + '\n' + row.delegate})
SET a.touched = true
WITH a, row
WHERE coalesce(a.version, 0) < row.properties.version
SET a.version = row.properties.version
WITH row
MATCH (from:Volk {id: row.delegator})
WITH row, collect(from)[0] AS from
MATCH (to:Volk {id: row.delegate})
WITH row, from, collect(to)[0] AS to
MERGE (from)-[r:DELEGATED_TO]->(to)
SET r = row.properties
