-- Take over what cold knows where hot holds nothing as new. ARGV: field, version, value, … .
local changed = false
for i = 1, #ARGV, 3 do
  local held = call('HGET', name.delegations, ARGV[i])
  if not held or tonumber(string.match(held, '^%d+')) < tonumber(ARGV[i + 1]) then
    call('HSET', name.delegations, ARGV[i], ARGV[i + 2])
    changed = true
  end
end
if changed then log_change('delegation', '', 0) end
return 0
