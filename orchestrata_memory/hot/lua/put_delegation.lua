-- Grant or revoke. ARGV: 1 the operation (JSON), 2 field, 3 value, then the outbox record's fields.
-- Answer: {'done'}, {'conflict'} or {'full'}.
local op = cjson.decode(ARGV[1])
local held = call('HGET', name.delegations, ARGV[2])
if held and tonumber(string.match(held, '^%d+')) >= op.version then return { 'conflict' } end
if outbox_full(op.limit) then return { 'full' } end

call('HSET', name.delegations, ARGV[2], ARGV[3])
enqueue('delegation', op.key, arguments(4))
add_audit(op.audit)
log_change('delegation', '', op.version)
return { 'done' }
