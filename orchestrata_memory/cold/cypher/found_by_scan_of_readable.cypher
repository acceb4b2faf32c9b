// As found_by_scan, for a caller that may read little of a large scope.
CALL {
  MATCH (m:Memory) WHERE m.volk_id = $reader RETURN m
  UNION
  MATCH (m:Memory) WHERE m.classification IN ['shared', 'system'] RETURN m
  UNION
  UNWIND $readers AS id
  MATCH (:Volk {id: id})<-[:SHARED_WITH]-(m:Memory) RETURN m
}
WITH DISTINCT m
WHERE /*scope*/ AND /*readable*/
  AND /*sound*/
WITH m, vector.similarity.cosine(m.embedding, $vector) AS score
ORDER BY score DESC, m.key
LIMIT $limit
RETURN collect(/*found*/)
