-- Claim an explicit key. ARGV: key, token, milliseconds. Answer: {1 or 0, state}; 0: the claim is
-- another caller's. A key that is there is not claimed.
local key, token = ARGV[1], ARGV[2]
local state = state_of(key)
if state[1] ~= 'unknown' and state[1] ~= 'deleted' then return { 1, state } end
local holder = call('GET', name.claim(key))
if holder and holder ~= token then return { 0, state } end
call('SET', name.claim(key), token, 'PX', ARGV[3])
return { 1, state }
