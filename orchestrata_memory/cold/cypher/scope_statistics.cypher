MATCH (m:Memory)
WHERE /*scope*/ AND /*readable*/ AND size(m.sources) = 0
RETURN count(m), avg(m.term_count)
