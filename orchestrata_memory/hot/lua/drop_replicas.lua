-- Drop replicas held for a session. ARGV: session, keys. Answer: how many there were.
local session, dropped = ARGV[1], 0
local held = name.replicas(session)
for i = 2, #ARGV do
  local key = ARGV[i]
  local owner = call('HGET', held, key)
  if owner then
    dropped = dropped + 1
    local p = pointer_of(key)
    call('HDEL', held, key)
    call('SREM', name.copies(key), session)
    -- A live entry at home in this very session stands under the same name.
    if not (p and p.state == 'live' and p.session == session) then
      drop_copy(session, owner, key)
    end
    if p and p.state == 'cold' and call('EXISTS', name.copies(key)) == 0 then
      drop_vectors(key)
      mark(key, 'cold', p.version)
    end
    log_change('move', key, p and p.version or 0)
  end
end
return dropped
