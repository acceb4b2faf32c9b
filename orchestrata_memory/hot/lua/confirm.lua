-- Cold holds these versions. ARGV: outbox id, key, version, … . Answer: keys whose copy went.
-- Begins with XACK and XDEL, so that a full server can be emptied.
local gone = {}
for i = 1, #ARGV, 3 do
  local id, key, version = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local flat = stream_record(name.outbox, id)
  local record = flat and to_table(flat) or nil
  -- A record that brings more than cold has is not done, whatever else was confirmed.
  local done = not record or (tonumber(record.version) or 0) <= version
  if record and done then
    call('XACK', name.outbox, GROUP, id)
    call('XDEL', name.outbox, id)
  end
  local p = pointer_of(key)
  if p and done then
    local pointer = name.pointer(key)
    if p.outbox == id then
      call('HDEL', pointer, 'outbox')
      p.outbox = nil
    end
    if version > p.cold_version then
      call('HSET', pointer, 'cold_version', version)
      p.cold_version = version
    end
    local safe = not p.outbox and not p.dead and p.cold_version >= p.version
    if safe and p.state == 'deleted' then
      mark(key, 'deleted', p.cold_version)
    elseif safe and p.state == 'live' then
      local left = call('PTTL', name.entry(p.session, p.owner, key))
      if is_closed(p.session) or left < 0 or p.cold_version > p.version then
        move_out(key, p, p.cold_version)
        gone[#gone + 1] = key
      else
        call('PEXPIRE', pointer, left)
      end
    end
  end
end
return gone
