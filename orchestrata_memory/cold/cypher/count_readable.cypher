// Bounded, and at most too high: a memory may be counted once for each reason to read it.
CALL {
  MATCH (m:Memory) WHERE m.volk_id = $reader WITH m LIMIT $bound RETURN count(m) AS part
  UNION ALL
  MATCH (m:Memory) WHERE m.classification IN ['shared', 'system']
  WITH m LIMIT $bound RETURN count(m) AS part
  UNION ALL
  UNWIND $readers AS id
  MATCH (:Volk {id: id})<-[:SHARED_WITH]-(m:Memory)
  WITH m LIMIT $bound RETURN count(m) AS part
}
RETURN sum(part)
