UNWIND $rows AS row
MERGE (a:MemoryAudit {audit_id: row.audit_id})
ON CREATE SET a = row
