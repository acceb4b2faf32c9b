// Bounded: more than the bound is not counted.
MATCH (m:Memory)
WHERE /*scope*/
WITH m LIMIT $bound
RETURN count(m)
