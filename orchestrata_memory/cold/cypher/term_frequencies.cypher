UNWIND $terms AS term
CALL db.index.fulltext.queryNodes($index, term.lucene) YIELD node AS m
WITH term, m
WHERE /*scope*/ AND /*readable*/ AND size(m.sources) = 0
RETURN term.text, count(m)
