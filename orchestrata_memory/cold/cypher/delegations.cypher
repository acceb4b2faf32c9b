MATCH (from:Volk)-[r:DELEGATED_TO]->(to:Volk)
WHERE r.version IS NOT NULL
RETURN from.id, to.id, r.created_at, r.expires_at, r.revoked, r.version
ORDER BY from.id, to.id
