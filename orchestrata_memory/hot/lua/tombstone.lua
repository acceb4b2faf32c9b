-- Delete a memory, hot or cold-only. ARGV: 1 the operation (JSON).
-- Answer: {'done'}, {'conflict'} or {'full'}.
local op = cjson.decode(ARGV[1])
local p = pointer_of(op.key)
if p and p.by == op.by then return { 'done' } end
if p and (p.state == 'deleted' or p.version ~= op.expected) then return { 'conflict' } end
if outbox_full(op.limit) then return { 'full' } end

local known = { owner = op.volk, session = op.session, project = op.project }
bury(op.key, known, p, op.expected + 1, op.by)
withdraw(op.key, op.withdrawals, op.audit)
add_audit(op.audit)
return { 'done' }
