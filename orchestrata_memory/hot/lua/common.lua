-- What the scripts share; stands behind the names in front of each script.
--
-- Redis does not undo a script that fails half-way, so every check comes before the first write.
-- On a full server only the first write can be refused: scripts that add begin with one that may
-- be refused (HSET), scripts that free memory with one that may not (DEL, XACK, XDEL, HDEL).
--
-- Pointer: state live|deleted|cold, version, owner, session and project (of origin), by (id of the
-- write that made this state: a repeated write is recognised by it), outbox or dead (id of the
-- newest unconfirmed record on that stream), cold_version (what cold is known to hold).

local call = redis.call
local MARKER_MS = 600000
local CHANGES_KEPT = 20000
local GROUP = 'writers'
local NOT_OF_ENTRY = { kind = true, key = true, problem = true }

local function to_table(flat)
  local result = {}
  for i = 1, #flat, 2 do result[flat[i]] = flat[i + 1] end
  return result
end

local function arguments(from)
  local result = {}
  for i = from, #ARGV do result[#result + 1] = ARGV[i] end
  return result
end

local function pointer_of(key)
  local flat = call('HGETALL', name.pointer(key))
  if #flat == 0 then return nil end
  local p = to_table(flat)
  p.version = tonumber(p.version)
  p.cold_version = tonumber(p.cold_version or '0')
  return p
end

-- TTLs ---------------------------------------------------------------------------------------

-- A name that always has a TTL lives at least `ms` more; never shortened (-1: just made).
local function keep(what, ms)
  if call('PTTL', what) < ms then call('PEXPIRE', what, ms) end
end

-- Streams ------------------------------------------------------------------------------------

local function stream_record(stream, id)
  local found = call('XRANGE', stream, id, id)
  if #found == 0 then return nil end
  return found[1][2]
end

local function outbox_full(limit)
  return call('XLEN', name.outbox) + call('XLEN', name.dead) >= limit
end

local function enqueue(kind, key, flat)
  return call('XADD', name.outbox, '*', 'kind', kind, 'key', key, unpack(flat))
end

local function add_audit(flat)
  call('XADD', name.audit, '*', unpack(flat))
end

-- Each record of the change log names the one before, so a reader sees a gap: a trimmed log, and
-- a server that came back without its last writes.
local last_change
local function log_change(kind, key, version)
  if not last_change then
    local last = call('XREVRANGE', name.changes, '+', '-', 'COUNT', 1)
    last_change = #last > 0 and last[1][1] or '0-0'
  end
  last_change = call('XADD', name.changes, 'MAXLEN', '~', CHANGES_KEPT, '*',
    'prev', last_change, 'kind', kind, 'key', key, 'version', version)
end

local function announce(kind, key, version)
  log_change(kind, key, version)
  call('PUBLISH', name.changes, cjson.encode({ key = key, kind = kind, version = version }))
end

-- Census -------------------------------------------------------------------------------------

-- The names are those of models/census_names.py. One without a count notes that it was written
-- (see seed_census.lua). Once everything is counted from nothing (`origin`), an absent name counts
-- nothing.
local function count(session, project, by)
  local names = { 'all', 'session:' .. session }
  if project then names[3] = 'project:' .. project end
  local from_nothing = call('HEXISTS', name.census, 'origin') == 1
  for _, counted in ipairs(names) do
    if from_nothing or call('HEXISTS', name.census, counted) == 1 then
      call('HINCRBY', name.census, counted, by)
    else
      call('HINCRBY', name.unseeded, counted, 1)
    end
  end
end

-- Copies -------------------------------------------------------------------------------------

-- Seconds since 1970 of an ISO 8601 time in UTC with microseconds, as text.
local function epoch(iso)
  local y, m, d, hh, mm, ss, us = string.match(iso, '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)%.(%d+)')
  if not y then return '0' end
  y, m, d = tonumber(y), tonumber(m), tonumber(d)
  if m <= 2 then y = y - 1 end
  local era = math.floor(y / 400)
  local year = y - era * 400
  local day = math.floor((153 * (m + (m > 2 and -3 or 9)) + 2) / 5) + d - 1
  local days = era * 146097 + year * 365 + math.floor(year / 4) - math.floor(year / 100) + day - 719468
  local seconds = days * 86400 + hh * 3600 + mm * 60 + ss
  if seconds < 0 then return string.format('%.6f', seconds + tonumber('0.' .. us)) end
  return string.format('%.0f.%s', seconds, us)
end

-- Fields and values of an entry out of an outbox record or a dead letter.
local function entry_part(flat)
  local result = {}
  for i = 1, #flat, 2 do
    if not NOT_OF_ENTRY[flat[i]] then
      result[#result + 1] = flat[i]
      result[#result + 1] = flat[i + 1]
    end
  end
  return result
end

-- The newest version of a live key and the TTL left to its hash: from the hash, else from the
-- pending record (TTL -2).
local function live_fields(key, p)
  local hash = name.entry(p.session, p.owner, key)
  local flat = call('HGETALL', hash)
  if #flat > 0 then return flat, call('PTTL', hash) end
  if p.outbox then flat = stream_record(name.outbox, p.outbox)
  elseif p.dead then flat = stream_record(name.dead, p.dead)
  else flat = nil end
  return flat and entry_part(flat), -2
end

-- A replica of the version that cold holds, and the TTL left to it.
local function replica_fields(key, p)
  for _, session in ipairs(call('SMEMBERS', name.copies(key))) do
    local hash = name.entry(session, p.owner, key)
    local flat = call('HGETALL', hash)
    if #flat > 0 and tonumber(to_table(flat).version) == p.version then
      return flat, call('PTTL', hash)
    end
  end
  return nil, -2
end

local function write_copy(session, owner, key, flat, ms)
  local hash = name.entry(session, owner, key)
  local fields = to_table(flat)
  call('DEL', hash)
  call('HSET', hash, unpack(flat))
  call('PEXPIRE', hash, ms)
  local index = name.index(session, owner)
  call('ZADD', index, epoch(fields.created_at), key)
  keep(index, ms)
  for _, tag in ipairs(cjson.decode(fields.tags)) do
    local tagged = name.tagged(session, owner, tag)
    call('SADD', tagged, key)
    keep(tagged, ms)
  end
end

-- `flat`: the fields when the caller has them; the hash may be gone already.
local function drop_copy(session, owner, key, flat)
  local hash = name.entry(session, owner, key)
  local tags = flat and to_table(flat).tags or call('HGET', hash, 'tags')
  call('DEL', hash)
  call('ZREM', name.index(session, owner), key)
  call('ZREM', name.embedding_index(session), key)
  if tags then
    for _, tag in ipairs(cjson.decode(tags)) do
      call('SREM', name.tagged(session, owner, tag), key)
    end
  end
end

local function drop_vectors(key)
  call('DEL', name.embedding(key), name.vector(key))
end

local function drop_replicas_of(key, owner)
  for _, session in ipairs(call('SMEMBERS', name.copies(key))) do
    drop_copy(session, owner, key)
    call('HDEL', name.replicas(session), key)
  end
  call('DEL', name.copies(key))
end

-- Pointers -----------------------------------------------------------------------------------

local function set_pointer(key, p)
  local flat = {}
  for field, value in pairs(p) do
    flat[#flat + 1] = field
    flat[#flat + 1] = type(value) == 'number' and string.format('%.0f', value) or value
  end
  local pointer = name.pointer(key)
  call('HSET', pointer, unpack(flat))
  for _, field in ipairs({ 'outbox', 'dead', 'project' }) do
    if not p[field] then call('HDEL', pointer, field) end
  end
  call('PERSIST', pointer)
end

-- What remains of a key whose newest version cold holds: its version, for a while.
local function mark(key, state, version)
  local pointer = name.pointer(key)
  call('HDEL', pointer, 'outbox', 'dead')
  call('HSET', pointer, 'state', state, 'version', version)
  call('PEXPIRE', pointer, MARKER_MS)
end

-- The hot copy goes; cold holds `version`.
local function move_out(key, p, version)
  drop_copy(p.session, p.owner, key, (live_fields(key, p)))
  drop_vectors(key)
  call('SREM', name.session(p.session), key)
  mark(key, 'cold', version)
  log_change('move', key, version)
end

local function is_closed(session)
  return call('ZSCORE', name.closed, session) and true or false
end

-- What hot knows of a key, as HotState is read from it.
local function state_of(key)
  local p = pointer_of(key)
  if not p then return { 'unknown', 0, '', 0, -2, {} } end
  if p.state == 'live' then
    local flat, left = live_fields(key, p)
    if flat then return { 'live', p.version, p.owner or '', 0, left, flat } end
    return { p.cold_version >= p.version and 'cold' or 'unknown', p.version, p.owner or '', 0, -2, {} }
  end
  if p.state == 'cold' then
    local flat, left = replica_fields(key, p)
    return { 'cold', p.version, p.owner or '', flat and 1 or 0, left, flat or {} }
  end
  return { 'deleted', p.version, p.owner or '', 0, -2, {} }
end

-- Deleting -----------------------------------------------------------------------------------

-- A tombstone of `version`; `known` has owner, session, project: the pointer, or what the caller
-- knows of an entry that only cold holds.
local function bury(key, known, p, version, by)
  local flat = p and p.state == 'live' and live_fields(key, p) or nil
  drop_copy(known.session, known.owner, key, flat)
  drop_replicas_of(key, known.owner)
  drop_vectors(key)
  call('SREM', name.session(known.session), key)
  if p and p.dead then call('XDEL', name.dead, p.dead) end
  if flat then
    for _, source in ipairs(cjson.decode(to_table(flat).sources or '[]')) do
      call('SREM', name.summaries(source), key)
    end
  end
  local record = { 'version', version, 'volk_id', known.owner, 'session_id', known.session }
  if known.project then
    record[#record + 1] = 'project_id'
    record[#record + 1] = known.project
  end
  set_pointer(key, {
    state = 'deleted', version = version, owner = known.owner, session = known.session,
    project = known.project, by = by, cold_version = p and p.cold_version or 0,
    outbox = enqueue('delete', key, record),
  })
  count(known.session, known.project, -1)
  announce('delete', key, version)
end

-- The summaries made from a key fall with it, and those made from them: the given ones and those
-- that hot knows of. Each leaves an audit record derived from that of the operation.
local function withdraw(key, given, audit)
  local queue, seen, number = {}, { [key] = true }, 0
  local function add_known(source)
    for _, summary in ipairs(call('SMEMBERS', name.summaries(source))) do
      queue[#queue + 1] = { key = summary }
    end
    call('DEL', name.summaries(source))
  end
  for _, item in ipairs(given) do queue[#queue + 1] = item end
  add_known(key)
  local next_one = 1
  while queue[next_one] do
    local item = queue[next_one]
    next_one = next_one + 1
    local p = pointer_of(item.key)
    local known = p or (item.version and item) or nil
    if known and not seen[item.key] and not (p and p.state == 'deleted') then
      seen[item.key] = true
      number = number + 1
      add_known(item.key)
      local version = math.max(p and p.version or 0, item.version or 0) + 1
      local record = to_table(audit)
      record.audit_id = record.audit_id .. '-' .. number
      record.operation = 'withdraw'
      record.key = item.key
      record.rule = ''
      record.detail = 'a source was changed or deleted'
      bury(item.key, known, p, version, record.audit_id)
      local flat = {}
      for field, value in pairs(record) do
        flat[#flat + 1] = field
        flat[#flat + 1] = value
      end
      add_audit(flat)
    end
  end
end

local function note_sources(key, sources)
  for _, source in ipairs(sources) do call('SADD', name.summaries(source), key) end
end

-- Vectors ------------------------------------------------------------------------------------

-- Vectors of a version that is there already keep; their TTL is never shortened.
local function write_vectors(key, version, model, json, raw, tokens, ms)
  local vector, embedding = name.vector(key), name.embedding(key)
  local held = call('HMGET', vector, 'version', 'model', 'tokens')
  local same = held[1] == tostring(version) and held[2] == model and (held[3] or tokens == '')
  if not same or call('EXISTS', embedding) == 0 then
    local left = math.max(call('PTTL', vector), call('PTTL', embedding), ms)
    call('HSET', vector, 'version', version, 'model', model, 'vector', raw)
    if tokens ~= '' then call('HSET', vector, 'tokens', tokens) else call('HDEL', vector, 'tokens') end
    call('SET', embedding, json)
    call('PEXPIRE', vector, left)
    call('PEXPIRE', embedding, left)
  else
    keep(vector, ms)
    keep(embedding, ms)
  end
end

local function note_embedded(session, key, ms)
  call('ZADD', name.embedding_index(session), 'NX', 0, key)
  keep(name.embedding_index(session), ms)
end
