MATCH (m:Memory)
WHERE /*scope*/ AND /*readable*/ AND m.version IS NOT NULL
  AND ($include_summaries OR size(m.sources) = 0)
  AND (size($tags) = 0
       OR ($match_all AND all(tag IN $tags WHERE tag IN m.tags))
       OR (NOT $match_all AND any(tag IN $tags WHERE tag IN m.tags)))
WITH m
ORDER BY m.created_at DESC, m.key
SKIP $offset LIMIT $limit
RETURN
/*record*/
