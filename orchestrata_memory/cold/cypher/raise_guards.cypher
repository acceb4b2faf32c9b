// Take each key's guard, and raise it where this version is newer. Writing before reading the
// version locks the guard (Neo4j) or makes a second writer collide at commit (ArcadeDB).
UNWIND $rows AS row
MERGE (g:MemoryVersion {key: row.key})
SET g.touched = row.version
WITH g, row
WHERE coalesce(g.version, 0) < row.version
SET g.version = row.version, g.deleted = row.deleted
RETURN g.key
