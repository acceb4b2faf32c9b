-- Audit records of a key on one page of the stream. ARGV: key, start, page size.
-- Answer: {last id looked at or false, {id, fields and values} of each}.
local page = call('XRANGE', name.audit, ARGV[2], '+', 'COUNT', ARGV[3])
local found = {}
for _, record in ipairs(page) do
  if to_table(record[2]).key == ARGV[1] then found[#found + 1] = record end
end
return { #page == tonumber(ARGV[3]) and page[#page][1] or false, found }
