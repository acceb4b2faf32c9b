-- Delete a claim or lock that is still the caller's. ARGV: 'claim' or 'lock', id, token.
local what = name[ARGV[1]](ARGV[2])
if call('GET', what) == ARGV[3] then return call('DEL', what) end
return 0
