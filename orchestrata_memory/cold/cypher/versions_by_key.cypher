UNWIND $keys AS key
MATCH (g:MemoryVersion {key: key})
WHERE g.version IS NOT NULL
RETURN g.key, g.version, g.deleted
