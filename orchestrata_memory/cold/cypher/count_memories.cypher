MATCH (m:Memory) RETURN count(m)
