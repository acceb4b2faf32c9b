-- Give a live home copy at least the TTL. ARGV: key, milliseconds. One that expired is restored.
local key, ms = ARGV[1], tonumber(ARGV[2])
local p = pointer_of(key)
if not p or p.state ~= 'live' then return 0 end
local flat, left = live_fields(key, p)
if not flat then return 0 end
if left < 0 then
  write_copy(p.session, p.owner, key, flat, ms)
  call('SADD', name.session(p.session), key)
else
  keep(name.entry(p.session, p.owner, key), ms)
  keep(name.index(p.session, p.owner), ms)
  for _, tag in ipairs(cjson.decode(to_table(flat).tags)) do
    keep(name.tagged(p.session, p.owner, tag), ms)
  end
end
if call('PTTL', name.pointer(key)) >= 0 then keep(name.pointer(key), ms) end
keep(name.embedding(key), ms)
keep(name.vector(key), ms)
if call('ZSCORE', name.embedding_index(p.session), key) then
  keep(name.embedding_index(p.session), ms)
end
return 1
