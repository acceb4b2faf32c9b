-- Copy a cold entry into an open session. ARGV: 1 the operation (JSON), 2 vector version, 3 model,
-- 4 vector as JSON, 5 raw vector, 6 token vectors or empty, then the entry's fields and values.
-- Answer: 1 if the replica stands.
local op = cjson.decode(ARGV[1])
local fields = arguments(7)
local p = pointer_of(op.key)
if is_closed(op.session) then return 0 end
if p and (p.state ~= 'cold' or p.version > op.version) then return 0 end

local hash = name.entry(op.session, op.owner, op.key)
local held = call('HGET', hash, 'version')
local left = call('PTTL', hash)
if p and p.version < op.version then drop_replicas_of(op.key, op.owner) end
set_pointer(op.key, {
  state = 'cold', version = op.version, owner = op.owner, session = op.home,
  project = op.project, by = '', cold_version = op.version,
})
if held == tostring(op.version) then
  keep(hash, op.ttl)
  keep(name.index(op.session, op.owner), op.ttl)
  for _, tag in ipairs(cjson.decode(to_table(fields).tags)) do
    keep(name.tagged(op.session, op.owner, tag), op.ttl)
  end
else
  write_copy(op.session, op.owner, op.key, fields, math.max(left, op.ttl))
  announce('promote', op.key, op.version)
end
left = call('PTTL', hash)
call('SADD', name.copies(op.key), op.session)
keep(name.copies(op.key), left)
call('HSET', name.replicas(op.session), op.key, op.owner)
write_vectors(op.key, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], left)
note_embedded(op.session, op.key, left)
keep(name.pointer(op.key), call('PTTL', name.copies(op.key)))
return 1
