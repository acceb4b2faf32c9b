// What a new version is linked to is made anew; links of other types are not ours.
UNWIND $keys AS key
MATCH (m:Memory {key: key})-[r:BELONGS_TO|CREATED_BY|RELATES_TO|PART_OF|SHARED_WITH]->()
DELETE r
