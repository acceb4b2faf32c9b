-- Bring back hashes of pending entries that expired or soon will. ARGV: 'outbox' or 'dead', first
-- id, page size, milliseconds of TTL. Answer: {last id looked at or false, number restored}.
local stream, ms, restored = ARGV[1], tonumber(ARGV[4]), 0
local page = call('XRANGE', name[stream], ARGV[2], '+', 'COUNT', ARGV[3])
for _, letter in ipairs(page) do
  local record = to_table(letter[2])
  local p = record.kind == 'put' and record.key and pointer_of(record.key) or nil
  if p and p.state == 'live' and p[stream] == letter[1] then
    local left = call('PTTL', name.entry(p.session, p.owner, record.key))
    if left < ms / 2 then
      write_copy(p.session, p.owner, record.key, entry_part(letter[2]), ms)
      call('SADD', name.session(p.session), record.key)
      if left < 0 then
        restored = restored + 1
        log_change('restore', record.key, p.version)
      end
    end
  end
end
return { #page == tonumber(ARGV[3]) and page[#page][1] or false, restored }
