// Best first; the filters hold before the cut.
CALL db.index.fulltext.queryNodes($index, $lucene) YIELD node AS m, score
WITH m, score
WHERE /*scope*/ AND /*readable*/
WITH m, score
ORDER BY score DESC, m.key
LIMIT $limit
RETURN collect(/*found*/)
