// Exactly the nearest of the scope. An unsound vector is passed over.
MATCH (m:Memory)
WHERE /*scope*/ AND /*readable*/
  AND /*sound*/
WITH m, vector.similarity.cosine(m.embedding, $vector) AS score
ORDER BY score DESC, m.key
LIMIT $limit
RETURN collect(/*found*/)
