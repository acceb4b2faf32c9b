-- Closed sessions on one page that still have something in hot. ARGV: start, page size.
-- Answer: {number looked at, sessions}.
local first, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local page = call('ZRANGE', name.closed, first, first + size - 1)
local busy = {}
for _, session in ipairs(page) do
  if call('EXISTS', name.session(session), name.replicas(session)) > 0 then
    busy[#busy + 1] = session
  end
end
return { #page, busy }
