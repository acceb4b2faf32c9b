MATCH (m:Memory)
WHERE m.speaker_key IN $names AND /*scope*/ AND /*readable*/
RETURN DISTINCT m.speaker
