-- Put pointers right. ARGV: keys. Answer: {collected, requeued}.
-- A pending state whose record is gone from its stream (which no script does) is queued again.
local collected, requeued = 0, 0

local function has_copy(key, p)
  for _, session in ipairs(call('SMEMBERS', name.copies(key))) do
    if call('EXISTS', name.entry(session, p.owner, key)) == 1 then return true end
  end
  return false
end

local function is_pending(p)
  return (p.outbox and stream_record(name.outbox, p.outbox))
    or (p.dead and stream_record(name.dead, p.dead))
end

local function requeue(key, p)
  local pointer = name.pointer(key)
  if p.state == 'deleted' then
    local record = { 'version', p.version, 'volk_id', p.owner, 'session_id', p.session }
    call('HSET', pointer, 'outbox', enqueue('delete', key, record))
  else
    local flat = call('HGETALL', name.entry(p.session, p.owner, key))
    if #flat == 0 then return false end
    call('HSET', pointer, 'outbox', enqueue('put', key, flat))
  end
  call('HDEL', pointer, 'dead')
  call('PERSIST', pointer)
  requeued = requeued + 1
  return true
end

for _, key in ipairs(ARGV) do
  local p = pointer_of(key)
  if p and p.state == 'cold' then
    if not has_copy(key, p) and call('PTTL', name.pointer(key)) > MARKER_MS then
      drop_vectors(key)
      call('DEL', name.copies(key))
      mark(key, 'cold', p.version)
      log_change('expire', key, p.version)
      collected = collected + 1
    end
  elseif p and not is_pending(p) then
    if p.cold_version < p.version then
      if not requeue(key, p) and p.cold_version > 0 then move_out(key, p, p.cold_version) end
    elseif p.state == 'live' then
      local left = call('PTTL', name.entry(p.session, p.owner, key))
      if left < 0 then
        move_out(key, p, p.cold_version)
        collected = collected + 1
      elseif call('PTTL', name.pointer(key)) < left then
        call('PEXPIRE', name.pointer(key), left)
      end
    elseif call('PTTL', name.pointer(key)) < 0 then
      mark(key, 'deleted', p.version)
    end
  end
end
return { collected, requeued }
