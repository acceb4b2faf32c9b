-- Keep vectors of entries and replicas whose version still matches. ARGV: key, version, model,
-- vector as JSON, raw vector, token vectors or empty, … . Answer: how many were kept.
local attached = 0
for i = 1, #ARGV, 6 do
  local key, version = ARGV[i], ARGV[i + 1]
  local p = pointer_of(key)
  if p and p.version == tonumber(version) then
    local sessions = {}
    if p.state == 'live' then sessions = { p.session }
    elseif p.state == 'cold' then sessions = call('SMEMBERS', name.copies(key)) end
    local longest = -1
    for _, session in ipairs(sessions) do
      local left = call('PTTL', name.entry(session, p.owner, key))
      if left > 0 then
        note_embedded(session, key, left)
        longest = math.max(longest, left)
      end
    end
    if longest > 0 then
      write_vectors(key, version, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], longest)
      attached = attached + 1
    end
  end
end
return attached
