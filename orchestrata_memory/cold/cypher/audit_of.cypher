MATCH (a:MemoryAudit {key: $key})
RETURN a.audit_id, a.operation, a.volk_id, a.session_id, a.key, a.rule, a.outcome, a.detail, a.at
ORDER BY a.at DESC, a.audit_id
LIMIT $limit
