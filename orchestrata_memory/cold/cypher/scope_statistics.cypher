MATCH (m:Memory)
WHERE /*scope*/ AND /*readable*/
RETURN count(m), avg(m.term_count)
