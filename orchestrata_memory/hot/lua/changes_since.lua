-- What the change log says after a cursor, and counts of the census at the same moment.
-- ARGV[1]: the cursor, empty: from now on. ARGV[2], ...: names to count.
-- Answer: {cursor, 1 if nothing is missing, 1 if delegations changed, keys, counts or false}.
local since = ARGV[1]
local counts = {}
for i = 2, #ARGV do
  local number = call('HGET', name.census, ARGV[i])
  if not number and call('HEXISTS', name.census, 'origin') == 1 then number = '0' end
  counts[i - 1] = number
end
local last = call('XREVRANGE', name.changes, '+', '-', 'COUNT', 1)
local newest = #last > 0 and last[1][1] or '0-0'
if since == '' or since == newest then return { newest, 1, 0, {}, counts } end

local records = call('XRANGE', name.changes, '(' .. since, '+')
if #records == 0 or to_table(records[1][2]).prev ~= since then return { newest, 0, 1, {}, counts } end
local seen, changed, delegations = {}, {}, 0
for _, record in ipairs(records) do
  local fields = to_table(record[2])
  if fields.kind == 'delegation' then
    delegations = 1
  elseif not seen[fields.key] then
    seen[fields.key] = true
    changed[#changed + 1] = fields.key
  end
end
return { newest, 1, delegations, changed, counts }
