// Summaries that waited for these memories.
UNWIND $keys AS key
MATCH (a:MemoryAnchor {key: 'awaited\n' + key})
WITH a, key, a.summaries AS summaries
DELETE a
RETURN key, summaries
