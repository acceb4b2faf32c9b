-- The next version of a live memory, hot or cold-only. ARGV: 1 the operation (JSON), then the
-- entry's fields and values. Answer: {'done'}, {'conflict'} or {'full'}.
local op = cjson.decode(ARGV[1])
local fields = arguments(2)
local p = pointer_of(op.key)
if p and p.by == op.by then return { 'done' } end
if p and (p.state == 'deleted' or p.version ~= op.expected) then return { 'conflict' } end
if outbox_full(op.limit) then return { 'full' } end

local old, left = nil, -2
if p and p.state == 'live' then old, left = live_fields(op.key, p) end
set_pointer(op.key, {
  state = 'live', version = op.version, owner = op.volk, session = op.session,
  project = op.project, by = op.by, cold_version = p and p.cold_version or op.expected,
  outbox = enqueue('put', op.key, fields),
})
if p and p.dead then call('XDEL', name.dead, p.dead) end
drop_replicas_of(op.key, op.volk)
drop_copy(op.session, op.volk, op.key, old)
drop_vectors(op.key)
write_copy(op.session, op.volk, op.key, fields, math.max(left, op.ttl))
call('SADD', name.session(op.session), op.key)
withdraw(op.key, op.withdrawals, op.audit)
note_sources(op.key, op.sources)
add_audit(op.audit)
announce(op.kind, op.key, op.version)
return { 'done' }
