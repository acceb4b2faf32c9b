-- Start counts that do not exist. ARGV: name, count, writes noted when it was found missing, … .
-- Taken only if it was not written to since.
for i = 1, #ARGV, 3 do
  local counted, number, noted = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local from_nothing = call('HEXISTS', name.census, 'origin') == 1
  local written = call('HGET', name.unseeded, counted) or '0'
  if not from_nothing and written == noted
      and call('HSETNX', name.census, counted, number) == 1 then
    call('HDEL', name.unseeded, counted)
    if counted == 'all' and tonumber(number) == 0 then
      call('HSET', name.census, 'origin', 1)
      call('DEL', name.unseeded)
    end
  end
end
return 0
