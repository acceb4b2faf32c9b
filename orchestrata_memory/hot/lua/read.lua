-- State of each key in ARGV, without touching a TTL.
local result = {}
for i, key in ipairs(ARGV) do result[i] = state_of(key) end
return result
