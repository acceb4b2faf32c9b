MERGE (a:MemoryAnchor {key: 'probe'})
SET a.touched = true
