-- A new memory. ARGV: 1 the operation (JSON), then the entry's fields and values.
-- Answer: {'done', position}, {'conflict'} or {'full'}.
local op = cjson.decode(ARGV[1])
local fields = arguments(2)
local p = pointer_of(op.key)
if p and p.by == op.by then
  local flat = p.state == 'live' and live_fields(op.key, p) or nil
  return { 'done', flat and to_table(flat).position or '0' }
end
if p and (p.state ~= 'deleted' or p.version + 1 ~= op.version) then return { 'conflict' } end
local holder = call('GET', name.claim(op.key)) or nil
if holder ~= op.claim then return { 'conflict' } end
for i, source in ipairs(op.sources) do
  local of_source = pointer_of(source)
  if of_source and (of_source.state == 'deleted' or of_source.version > op.source_versions[i]) then
    return { 'conflict' }
  end
end
if outbox_full(op.limit) then return { 'full' } end

local position = call('HINCRBY', name.positions(op.session), op.volk, 1)
for i = 1, #fields, 2 do
  if fields[i] == 'position' then fields[i + 1] = tostring(position) end
end
set_pointer(op.key, {
  state = 'live', version = op.version, owner = op.volk, session = op.session,
  project = op.project, by = op.by, cold_version = p and p.cold_version or 0,
  outbox = enqueue('put', op.key, fields),
})
if p and p.dead then call('XDEL', name.dead, p.dead) end
write_copy(op.session, op.volk, op.key, fields, op.ttl)
call('SADD', name.session(op.session), op.key)
note_sources(op.key, op.sources)
if holder then call('DEL', name.claim(op.key)) end
count(op.session, op.project, 1)
add_audit(op.audit)
announce(op.kind, op.key, op.version)
return { 'done', tostring(position) }
