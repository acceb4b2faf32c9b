-- Take or renew a session's migration lock. ARGV: session, token, milliseconds.
local what = name.lock(ARGV[1])
local holder = call('GET', what)
if holder and holder ~= ARGV[2] then return 0 end
call('SET', what, ARGV[2], 'PX', ARGV[3])
return 1
