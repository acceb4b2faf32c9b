MATCH (m:Memory)
RETURN m.project_id, count(m)
