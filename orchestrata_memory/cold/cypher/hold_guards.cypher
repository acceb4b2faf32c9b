// Take the guards of the keys whose newest version is still the given one.
UNWIND $rows AS row
MATCH (g:MemoryVersion {key: row.key})
SET g.touched = row.version
WITH g, row
WHERE g.version = row.version AND NOT g.deleted
RETURN g.key
