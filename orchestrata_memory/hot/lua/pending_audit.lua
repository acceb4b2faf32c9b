-- The oldest audit records. ARGV: count.
return call('XRANGE', name.audit, '-', '+', 'COUNT', ARGV[1])
