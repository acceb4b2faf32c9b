// The index gives its nearest `width` memories; of these what the filters let through.
CALL db.index.vector.queryNodes($index, $width, $vector) YIELD node AS m, score
WITH m, score
WHERE /*scope*/ AND /*readable*/
WITH m, score
ORDER BY score DESC, m.key
LIMIT $limit
RETURN collect(/*found*/)
