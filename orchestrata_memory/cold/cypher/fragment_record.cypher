[m.key, m.content, m.summary, m.tags, m.metadata, m.classification, m.volk_id, m.session_id,
 m.task_id, m.project_id, m.portfolio_id, m.created_at, m.updated_at, m.token_count, m.version,
 m.shared_with, m.content_hash, m.position, m.sources, m.source_versions]
