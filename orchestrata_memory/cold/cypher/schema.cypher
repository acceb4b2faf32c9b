// Both dialects. Uniqueness only on labels of our own; Session, Volk, Task and Project may be
// shared with other components, so they get a plain index.
CREATE CONSTRAINT memory_key IF NOT EXISTS FOR (m:Memory) REQUIRE m.key IS UNIQUE;
CREATE CONSTRAINT memory_version_key IF NOT EXISTS FOR (g:MemoryVersion) REQUIRE g.key IS UNIQUE;
CREATE CONSTRAINT memory_anchor_key IF NOT EXISTS FOR (a:MemoryAnchor) REQUIRE a.key IS UNIQUE;
CREATE CONSTRAINT memory_audit_id IF NOT EXISTS FOR (a:MemoryAudit) REQUIRE a.audit_id IS UNIQUE;
CREATE INDEX memory_session_id IF NOT EXISTS FOR (s:Session) ON (s.id);
CREATE INDEX memory_volk_id IF NOT EXISTS FOR (v:Volk) ON (v.id);
CREATE INDEX memory_task_id IF NOT EXISTS FOR (t:Task) ON (t.id);
CREATE INDEX memory_project_id IF NOT EXISTS FOR (p:Project) ON (p.id);
CREATE INDEX memory_by_volk IF NOT EXISTS FOR (m:Memory) ON (m.volk_id);
CREATE INDEX memory_by_session IF NOT EXISTS FOR (m:Memory) ON (m.session_id);
CREATE INDEX memory_by_task IF NOT EXISTS FOR (m:Memory) ON (m.task_id);
CREATE INDEX memory_by_project IF NOT EXISTS FOR (m:Memory) ON (m.project_id);
CREATE INDEX memory_by_portfolio IF NOT EXISTS FOR (m:Memory) ON (m.portfolio_id);
CREATE INDEX memory_by_created_at IF NOT EXISTS FOR (m:Memory) ON (m.created_at);
CREATE INDEX memory_by_classification IF NOT EXISTS FOR (m:Memory) ON (m.classification);
CREATE INDEX memory_by_slot IF NOT EXISTS FOR (m:Memory) ON (m.slot);
CREATE INDEX memory_by_speaker IF NOT EXISTS FOR (m:Memory) ON (m.speaker_key);
CREATE INDEX memory_audit_by_key IF NOT EXISTS FOR (a:MemoryAudit) ON (a.key);
CREATE INDEX memory_audit_by_at IF NOT EXISTS FOR (a:MemoryAudit) ON (a.at);
