-- Move a record that keeps failing to the dead letters. ARGV: outbox id, problem.
-- A record that a newer version has overtaken just goes.
local id = ARGV[1]
local flat = stream_record(name.outbox, id)
call('XACK', name.outbox, GROUP, id)
if not flat then return 0 end
local record = to_table(flat)
local p = record.key and record.kind ~= 'delegation' and pointer_of(record.key) or nil
call('XDEL', name.outbox, id)
if p and p.outbox ~= id and (tonumber(record.version) or 0) < p.version then return 0 end
local dead = call('XADD', name.dead, '*', 'problem', ARGV[2], unpack(flat))
if p and p.outbox == id then
  call('HDEL', name.pointer(record.key), 'outbox')
  call('HSET', name.pointer(record.key), 'dead', dead)
end
return 1
