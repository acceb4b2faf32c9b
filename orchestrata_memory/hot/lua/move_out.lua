-- Drop a hot copy that cold holds. ARGV: key, version that cold holds. Answer: 1 if dropped.
local key, version = ARGV[1], tonumber(ARGV[2])
local p = pointer_of(key)
if not p or p.state ~= 'live' or p.version > version or p.outbox or p.dead then return 0 end
move_out(key, p, math.max(version, p.cold_version))
return 1
