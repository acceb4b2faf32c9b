MATCH (m:Memory {key: $key})
WHERE /*readable*/
RETURN m.key
