// The label may be shared with other components and has no constraint: the anchor, a node of our
// own, makes two writers of one new id meet.
UNWIND $ids AS id
OPTIONAL MATCH (n:Project {id: id})
WITH id, count(n) AS present
WHERE present = 0
MERGE (a:MemoryAnchor {key: 'project\n' + id})
SET a.touched = true
MERGE (n:Project {id: id})
