// One memory of each name is enough to know that it speaks, and in which spelling.
UNWIND $names AS name
CALL {
  WITH name
  MATCH (m:Memory {speaker_key: name})
  WHERE /*scope*/ AND /*readable*/ AND size(m.sources) = 0
  RETURN m.speaker AS speaker
  LIMIT 1
}
RETURN speaker
