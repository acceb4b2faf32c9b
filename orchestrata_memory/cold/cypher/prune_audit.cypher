MATCH (a:MemoryAudit)
WHERE a.at < $before
WITH a LIMIT $limit
DELETE a
RETURN count(*)
