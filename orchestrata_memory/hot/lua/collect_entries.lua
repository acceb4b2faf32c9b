-- Drop hashes that nothing leads to (their pointer or set of copies is gone, which only eviction
-- or a foreign hand does). ARGV: session, volk, key, … . Answer: how many.
local dropped = 0
for i = 1, #ARGV, 3 do
  local session, volk, key = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local replica = call('HGET', name.entry(session, volk, key), 'replica')
  if replica then
    local p = pointer_of(key)
    local reachable
    if replica == '1' then
      reachable = p and p.state == 'cold' and call('SISMEMBER', name.copies(key), session) == 1
    else
      reachable = p and p.state == 'live' and p.session == session
    end
    if not reachable then
      drop_copy(session, volk, key)
      log_change('expire', key, 0)
      dropped = dropped + 1
    end
  end
end
return dropped
