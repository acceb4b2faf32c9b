UNWIND $keys AS key
MATCH (m:Memory {key: key})
RETURN
/*record*/
