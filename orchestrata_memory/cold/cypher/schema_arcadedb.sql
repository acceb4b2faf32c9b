CREATE PROPERTY Memory.content IF NOT EXISTS STRING;
CREATE PROPERTY Memory.terms IF NOT EXISTS STRING;
CREATE PROPERTY Memory.embedding IF NOT EXISTS ARRAY_OF_FLOATS;
CREATE INDEX IF NOT EXISTS ON Memory (content) FULL_TEXT
METADATA {"analyzer": "org.apache.lucene.analysis.en.EnglishAnalyzer"};
CREATE INDEX IF NOT EXISTS ON Memory (terms) FULL_TEXT
METADATA {"analyzer": "org.apache.lucene.analysis.core.WhitespaceAnalyzer"};
CREATE INDEX IF NOT EXISTS ON Memory (embedding) LSM_VECTOR
METADATA {"dimensions": /*dimension*/, "similarity": "COSINE"};
