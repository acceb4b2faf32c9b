-- Forget sessions closed before a time that have nothing in hot any more. ARGV: seconds since 1970,
-- at most how many. Answer: how many were forgotten.
local forgotten = 0
local sessions = call('ZRANGEBYSCORE', name.closed, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, session in ipairs(sessions) do
  if call('EXISTS', name.session(session), name.replicas(session)) == 0 then
    call('ZREM', name.closed, session)
    call('DEL', name.positions(session))
    -- Without this count an absent name no longer means nothing.
    call('HDEL', name.census, 'session:' .. session, 'origin')
    call('HDEL', name.unseeded, 'session:' .. session)
    forgotten = forgotten + 1
  end
end
return forgotten
