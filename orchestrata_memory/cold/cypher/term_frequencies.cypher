UNWIND $terms AS term
CALL db.index.fulltext.queryNodes($index, term.lucene) YIELD node AS m
WITH term, m
WHERE /*scope*/ AND /*readable*/
RETURN term.text, count(m)
