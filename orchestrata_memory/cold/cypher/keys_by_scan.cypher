// Exactly the nearest of the scope. A vector that is missing, of another dimension or all zeros
// is passed over.
MATCH (m:Memory)
WHERE /*scope*/ AND /*readable*/
  AND size(m.embedding) = $dimension AND any(x IN m.embedding WHERE x <> 0.0)
WITH m.key AS key, vector.similarity.cosine(m.embedding, $vector) AS score
RETURN key, score
ORDER BY score DESC, key
LIMIT $limit
