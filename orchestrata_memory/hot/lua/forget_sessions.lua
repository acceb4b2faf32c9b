-- Forget sessions closed before a time that have nothing in hot any more. ARGV: seconds since 1970,
-- at most how many. Answer: how many were forgotten. Their counts in the census stay.
local forgotten = 0
local from_nothing = call('HEXISTS', name.census, 'origin') == 1
local sessions = call('ZRANGEBYSCORE', name.closed, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, session in ipairs(sessions) do
  if call('EXISTS', name.session(session), name.replicas(session)) == 0 then
    call('ZREM', name.closed, session)
    call('DEL', name.positions(session))
    -- A count stays unless an absent one says the same: it could not be had again exactly.
    local counted = 'session:' .. session
    if from_nothing and call('HGET', name.census, counted) == '0' then
      call('HDEL', name.census, counted)
    end
    forgotten = forgotten + 1
  end
end
return forgotten
