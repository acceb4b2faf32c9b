UNWIND $keys AS key
MATCH (m:Memory {key: key})
DETACH DELETE m
