-- Sizes for health: {outbox, time of its oldest record in ms or 0, dead letters, audit records}.
local oldest = call('XRANGE', name.outbox, '-', '+', 'COUNT', 1)
return {
  call('XLEN', name.outbox),
  #oldest > 0 and tonumber(string.match(oldest[1][1], '^%d+')) or 0,
  call('XLEN', name.dead),
  call('XLEN', name.audit),
}
