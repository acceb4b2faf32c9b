-- Consumers that nothing was heard of for long and that hold nothing go. ARGV: idle milliseconds.
-- One that is alive after all is made anew by its next read. Without the stream there is none.
local found = redis.pcall('XINFO', 'CONSUMERS', name.outbox, GROUP)
if found.err then return end
for _, flat in ipairs(found) do
  local consumer = to_table(flat)
  if consumer.pending == 0 and consumer.idle >= tonumber(ARGV[1]) then
    call('XGROUP', 'DELCONSUMER', name.outbox, GROUP, consumer.name)
  end
end
