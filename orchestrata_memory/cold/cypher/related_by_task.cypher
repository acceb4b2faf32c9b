UNWIND $keys AS key
MATCH (:Memory {key: key})-[:RELATES_TO]->(hub:Task)
WHERE NOT hub.id IN $passed
WITH hub, min(key) AS key
MATCH (hub)<-[:RELATES_TO]-(m:Memory)
WHERE /*readable*/ AND NOT m.key IN $seen
WITH m, min(key) AS key, collect(hub.id) AS hubs
ORDER BY m.created_at DESC, m.key
LIMIT $limit
RETURN key, hubs,
/*record*/
