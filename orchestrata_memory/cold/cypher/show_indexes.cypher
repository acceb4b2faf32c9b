SHOW INDEXES
YIELD name, type, labelsOrTypes, properties, state, options
RETURN name, type, labelsOrTypes, properties, state, options
