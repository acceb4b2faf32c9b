-- Counts of the names in ARGV. Answer for each: {count or false, writes noted so far or false};
-- writes are told of a missing count while nothing is on its way to cold.
local from_nothing = call('HEXISTS', name.census, 'origin') == 1
local quiet = not outbox_full(1)
local result = {}
for i, counted in ipairs(ARGV) do
  local number = call('HGET', name.census, counted)
  if not number and from_nothing then number = '0' end
  local written = quiet and not number and (call('HGET', name.unseeded, counted) or '0')
  result[i] = { number, written }
end
return result
