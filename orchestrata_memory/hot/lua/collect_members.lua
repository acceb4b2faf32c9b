-- Remove what stands in a collection for an entry that is gone. ARGV: kind, jobs (JSON list of
-- {parts, members}). Without members the whole collection is looked at, unless it is large.
-- Answer: {removed, positions of the jobs that are too large}.
local LARGE = 500
local kind, jobs = ARGV[1], cjson.decode(ARGV[2])
local removed, large = 0, {}

local function entry_gone(session, volk, key)
  return call('EXISTS', name.entry(session, volk, key)) == 0
end

local function has_tag(session, volk, key, tag)
  local tags = call('HGET', name.entry(session, volk, key), 'tags')
  if not tags then return false end
  for _, held in ipairs(cjson.decode(tags)) do
    if held == tag then return true end
  end
  return false
end

local COMMANDS = {
  zset = { 'ZCARD', 'ZREM', function(what) return call('ZRANGE', what, 0, -1) end },
  set = { 'SCARD', 'SREM', function(what) return call('SMEMBERS', what) end },
  hash = { 'HLEN', 'HDEL', function(what) return call('HKEYS', what) end },
}

-- For each kind: type, name, and whether a member is left over. `expires`: its going is a change.
local KINDS = {
  index = { 'zset', name.index, function(parts, key)
    return entry_gone(parts[1], parts[2], key)
  end, expires = true },
  tags = { 'set', name.tagged, function(parts, key)
    return not has_tag(parts[1], parts[2], key, parts[3])
  end },
  ['embed:index'] = { 'zset', name.embedding_index, function(parts, key)
    local p = pointer_of(key)
    return not p or call('EXISTS', name.vector(key)) == 0 or entry_gone(parts[1], p.owner, key)
  end },
  replicas = { 'hash', name.replicas, function(parts, key)
    local owner = call('HGET', name.replicas(parts[1]), key)
    return not owner or call('SISMEMBER', name.copies(key), parts[1]) == 0
      or entry_gone(parts[1], owner, key)
  end, expires = true },
  copies = { 'set', name.copies, function(parts, session)
    local p = pointer_of(parts[1])
    return not p or p.state ~= 'cold' or entry_gone(session, p.owner, parts[1])
  end },
  session = { 'set', name.session, function(parts, key)
    local p = pointer_of(key)
    return not p or p.state ~= 'live' or p.session ~= parts[1]
  end, expires = true },
  summaries = { 'set', name.summaries, function(_, key)
    local p = pointer_of(key)
    return not p or p.state == 'deleted'
  end },
}

local type_name, name_of, left_over = unpack(KINDS[kind])
local cardinality, remove, all = unpack(COMMANDS[type_name])
for number, job in ipairs(jobs) do
  local what = name_of(unpack(job.parts))
  local members = job.members
  if not members then
    if call(cardinality, what) > LARGE then
      large[#large + 1] = number - 1
      members = {}
    else
      members = all(what)
    end
  end
  for _, member in ipairs(members) do
    if left_over(job.parts, member) and call(remove, what, member) == 1 then
      removed = removed + 1
      if KINDS[kind].expires then log_change('expire', member, 0) end
    end
  end
end
return { removed, large }
