UNWIND $keys AS key
MATCH (:Memory {key: key})-[:PART_OF]->(hub:Project)
WHERE NOT hub.id IN $passed
WITH hub, min(key) AS key
MATCH (hub)<-[:PART_OF]-(m:Memory)
WHERE /*readable*/ AND NOT m.key IN $seen
WITH m, min(key) AS key, collect(hub.id) AS hubs
ORDER BY m.created_at DESC, m.key
LIMIT $limit
RETURN key, hubs,
/*record*/
