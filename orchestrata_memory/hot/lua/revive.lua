-- Put dead letters back on the outbox, ARGV[1] at most. Answer: their number.
local letters = call('XRANGE', name.dead, '-', '+', 'COUNT', ARGV[1])
for _, letter in ipairs(letters) do
  local flat = {}
  for i = 1, #letter[2], 2 do
    if letter[2][i] ~= 'problem' then
      flat[#flat + 1] = letter[2][i]
      flat[#flat + 1] = letter[2][i + 1]
    end
  end
  local record = to_table(flat)
  local id = call('XADD', name.outbox, '*', unpack(flat))
  call('XDEL', name.dead, letter[1])
  local p = record.key and record.kind ~= 'delegation' and pointer_of(record.key) or nil
  if p and p.dead == letter[1] then
    call('HDEL', name.pointer(record.key), 'dead')
    call('HSET', name.pointer(record.key), 'outbox', id)
  end
end
return #letters
