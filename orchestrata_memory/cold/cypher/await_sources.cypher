// A summary may arrive before one of its sources: remember it under the source's key.
UNWIND $rows AS row
MERGE (a:MemoryAnchor {key: 'awaited\n' + row.id})
SET a.summaries = coalesce(a.summaries, []) + [row.key]
