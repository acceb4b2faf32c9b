-- A session is closed. ARGV: session.
local now = call('TIME')
return call('ZADD', name.closed, 'NX', now[1], ARGV[1])
