"""The cold tier: long-term memory as a graph, on Neo4j or ArcadeDB over Bolt."""
