-- Append audit records unless the stream is full. ARGV: limit, then each record's fields and values
-- (JSON list). Answer: 1, or 0 if it is full.
if call('XLEN', name.audit) >= tonumber(ARGV[1]) then return 0 end
for i = 2, #ARGV do add_audit(cjson.decode(ARGV[i])) end
return 1
