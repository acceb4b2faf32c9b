MATCH (m:Memory {session_id: $session_id})
RETURN count(m)
