-- Records left unconfirmed by a consumer. ARGV: consumer, idle milliseconds, count.
-- Answer: {id, times delivered before, fields and values} of each.
local consumer, idle, wanted = ARGV[1], ARGV[2], tonumber(ARGV[3])
local result, cursor = {}, '0-0'
repeat
  local claimed = call('XAUTOCLAIM', name.outbox, GROUP, consumer, idle, cursor,
    'COUNT', wanted - #result)
  cursor = claimed[1]
  for _, record in ipairs(claimed[2]) do
    local pending = call('XPENDING', name.outbox, GROUP, record[1], record[1], 1)
    result[#result + 1] = { record[1], #pending > 0 and pending[1][4] - 1 or 0, record[2] }
  end
until cursor == '0-0' or #result >= wanted
return result
