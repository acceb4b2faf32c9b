-- Delete vectors of keys that hot holds no copy of. ARGV: keys. Answer: how many keys had some.
local removed = 0
for _, key in ipairs(ARGV) do
  local p = pointer_of(key)
  local needed = false
  if p and p.state == 'live' then
    needed = p.outbox or p.dead or call('EXISTS', name.entry(p.session, p.owner, key)) == 1
  elseif p and p.state == 'cold' then
    for _, session in ipairs(call('SMEMBERS', name.copies(key))) do
      needed = needed or call('EXISTS', name.entry(session, p.owner, key)) == 1
    end
  end
  if not needed and call('DEL', name.embedding(key), name.vector(key)) > 0 then
    removed = removed + 1
  end
end
return removed
