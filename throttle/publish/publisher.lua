-- Publish the windows of one batch, its dead letters and its books in one atomic step;
-- safe to repeat.
--
-- KEYS  meta, last, windows, ledger, batches, groups, the dead letters of each partition
-- ARGV  channel, job, term, start cut, end cut, window_ms, length of the window log,
--       batch id, number of partitions, number of windows, version of the issue table (0:
--       none), its digest, the stale rows that groups leave out ("<end> <isin>" of each, with spaces
--       between them; *: any);
--       number of markets, {market}; number of groups that the table names, {field}, or -1
--       if they are the same as in the batch before;
--       whether places of markets are given;
--       for each window, oldest first: end, number of rows per partition, of each row the
--       place of its market (5 digits, nothing if they are not given), number of groups, {field, place of
--       its market or -1, body} per group, one line per row, partition by partition
--       (snapshot.py, Row.encode);
--       if there are several windows: number of groups of all of them together, {field,
--       place, body} per group;
--       for each partition: its number, trades read, superseded, positions without an
--       entry, refusals without a letter, trades beyond the first of an entry, trades of
--       unknown issues, the log's own count at the end cut (-1 if unknown), number of
--       refusals, {reason, count} per refusal, number of names of what is no trade, {name,
--       count} per name;
--       how many dead letters a partition keeps, number of dead letters, for each, by
--       position: which of the partitions (0 is the first), id, append time, reason,
--       error, its bytes or their beginning, how many they are, their digest
--
-- A job whose term is not the newest publishes nothing, nor does one whose batch does
-- not begin where the job's last one ended, nor anybody on a server that was started since
-- the epoch began (acquire.lua begins another one there). A row whose version is not greater than the
-- stored one (trade_order.py) is stale. Every window gets the next offset, an entry in the window log,
-- and its part of the one message on the channel. Who listens to the channel of a market
-- gets the same message with that market's rows and group.
-- Returns {status, ...}:
--   ok, epoch, offset, windows, rows, stale, channels of markets that somebody listens
--     to, the ledger: whether it balances says whoever reads it (ledger.py)
--   repeat           this batch was published before
--   fenced, term     another job of this name has taken over
--   lost             the stream is gone, or may be older than what was published: it is
--     older than this job's last batch, or its server was started again
--   stale, {end, isin}  other rows are stale than groups leave out: nothing was written
--   listened         somebody listens to a market and no places were given: neither
local meta, last, windows, ledger, batches, groups = unpack(KEYS)
local channel, job, term, start_cut, end_cut = unpack(ARGV, 1, 5)
local window_ms, window_log, batch_id = ARGV[6], ARGV[7], ARGV[8]
local partitions, window_count = tonumber(ARGV[9]), tonumber(ARGV[10])
local issues, issues_digest, expected_stale = ARGV[11], ARGV[12], ARGV[13]
-- Places in a row's line: "<12 isin> <54 version> <trades> <body>".
local ISIN_END, VERSION_START, VERSION_END, TRADES_START = 12, 14, 67, 69
local VERSION_CHARS = VERSION_END - VERSION_START + 1
local CHUNK = 1000
local PLACE_CHARS = 5
-- Most fields of the ledger before names of what is no trade are put together.
local MOST_FIELDS = 4096

-- Everything that could fail is asked for before anything is written.
local newest_term = tonumber(redis.call('HGET', meta, 'term:' .. job) or 0)
local published_cut = redis.call('HGET', meta, 'cut:' .. job)
local since = redis.call('HGET', ledger, 'since')
redis.call('XLEN', windows)
redis.call('XLEN', batches)
redis.call('HLEN', last)
redis.call('HLEN', groups)
for p = 0, partitions - 1 do redis.call('XLEN', KEYS[7 + p]) end
if newest_term > tonumber(term) then return {'fenced', newest_term} end
-- A smaller term than ours: the server has forgotten that it ever gave us one.
if newest_term < tonumber(term) or not since then return {'lost'} end
-- Another process than the one that the epoch began on may have lost publishes of somebody
-- who took over meanwhile, with their terms: their offsets would come again.
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('HGET', meta, 'server') ~= server then return {'lost'} end
if published_cut == end_cut then return {'repeat'} end
if published_cut ~= start_cut then return {'lost'} end
since = cjson.decode(since)

local epoch = redis.call('HGET', meta, 'epoch')
local offset = tonumber(redis.call('HGET', meta, 'offset'))
local now = redis.call('TIME')
local published_us = now[1] .. string.format('%06d', now[2])
local at = 14
local function take()
  at = at + 1
  return ARGV[at - 1]
end
local function skip(arguments)
  at = at + arguments
  return at - arguments
end

local markets = {}
for place = 1, tonumber(take()) do markets[place] = take() end
local named_count = tonumber(take())
local named_at = skip(math.max(named_count, 0))
local has_places = take() == '1'
-- Channels of markets that somebody listens to. Patterns do not count.
local channels = redis.call('PUBSUB', 'CHANNELS', channel .. ':*')
if #channels > 0 and not has_places then return {'listened'} end

-- The stored version of each issue that this batch has come across, '' for none.
local versions = {}
local function look_up(first, rows)
  for from = first, first + rows - 1, CHUNK do
    local unknown = {}
    for row = from, math.min(from + CHUNK, first + rows) - 1 do
      local isin = string.sub(ARGV[row], 1, ISIN_END)
      if not versions[isin] then unknown[#unknown + 1] = isin end
    end
    if #unknown > 0 then
      for i, value in ipairs(redis.call('HMGET', last, unpack(unknown))) do
        versions[unknown[i]] = value and string.sub(value, 1, VERSION_CHARS) or ''
      end
    end
  end
end

-- Which rows are stale is decided before anything is written: groups are without them.
local batch_windows, is_stale, stale_names, stale_reply = {}, {}, {}, {'stale'}
for number = 1, window_count do
  local window = {end_ms = take(), counts = {}, rows = 0}
  for partition = 1, partitions do
    window.counts[partition] = tonumber(take())
    window.rows = window.rows + window.counts[partition]
  end
  window.places, window.groups = take(), tonumber(take())
  window.groups_at = skip(3 * window.groups)
  window.rows_at = skip(window.rows)
  look_up(window.rows_at, window.rows)
  for row = window.rows_at, window.rows_at + window.rows - 1 do
    local line = ARGV[row]
    local isin = string.sub(line, 1, ISIN_END)
    local version = string.sub(line, VERSION_START, VERSION_END)
    if version > versions[isin] then
      versions[isin] = version
    else
      is_stale[row] = true
      stale_names[#stale_names + 1] = window.end_ms .. ' ' .. isin
      stale_reply[#stale_reply + 1] = window.end_ms
      stale_reply[#stale_reply + 1] = isin
    end
  end
  batch_windows[number] = window
end
if expected_stale ~= '*' and table.concat(stale_names, ' ') ~= expected_stale then
  return stale_reply
end
local last_window = batch_windows[window_count]
local together_at, together = last_window.groups_at, last_window.groups
if window_count > 1 then
  together = tonumber(take())
  together_at = skip(3 * together)
end

-- The header of a message with the groups from an argument on, or those of a market.
local function header(window, count, first, groups_count, market)
  local text = string.format(
    '{"epoch":"%s","offset":%d,"window":%s,"windows":%d,"published":%s',
    epoch, offset, window, count, published_us)
  if issues == '0' then return text .. '}' end
  local bodies = {}
  for group = first, first + 3 * (groups_count - 1), 3 do
    if not market or tonumber(ARGV[group + 1]) + 1 == market then
      bodies[#bodies + 1] = ARGV[group + 2]
    end
  end
  return text .. ',"issues":' .. issues .. ',"groups":[' .. table.concat(bodies, ',') .. ']}'
end

local listened = {}
for _, name in ipairs(channels) do
  listened[#listened + 1] = {name = name, market = -1}
  for place, market in ipairs(markets) do
    if name == channel .. ':' .. market then listened[#listened].market = place end
  end
end

-- What the batch changes: the newest row of each issue, in order of appearance.
local changed, order = {}, {}
local function change(isin, version, trades, body, market)
  local row = changed[isin]
  if not row then
    row = {trades = 0}
    changed[isin] = row
    order[#order + 1] = isin
  end
  row.version, row.trades, row.body, row.offset = version, row.trades + trades, body, offset
  row.market = market
end

local published, stale, message = {}, {}, nil
for partition = 1, partitions do
  published[partition], stale[partition] = 0, 0
end
for _, window in ipairs(batch_windows) do
  offset = offset + 1
  local lines = {header(window.end_ms, 1, window.groups_at, window.groups)}
  local row = window.rows_at
  for partition = 1, partitions do
    for _ = 1, window.counts[partition] do
      if is_stale[row] then
        stale[partition] = stale[partition] + 1
      else
        local line = ARGV[row]
        lines[#lines + 1] = line
        local space = string.find(line, ' ', TRADES_START, true)
        local trades = tonumber(string.sub(line, TRADES_START, space - 1))
        local market = nil
        if #listened > 0 then
          local place = (row - window.rows_at) * PLACE_CHARS
          market = tonumber(string.sub(window.places, place + 1, place + PLACE_CHARS))
        end
        change(string.sub(line, 1, ISIN_END), string.sub(line, VERSION_START, VERSION_END),
          trades, string.sub(line, space + 1), market and market + 1)
        published[partition] = published[partition] + 1
      end
      row = row + 1
    end
  end
  message = table.concat(lines, '\n')
  redis.call('XADD', windows, 'MAXLEN', '~', window_log, offset .. '-0',
    'snapshot', message)
end
local window = last_window.end_ms

for from = 1, #order, CHUNK do
  local values = {}
  for i = from, math.min(from + CHUNK - 1, #order) do
    local row = changed[order[i]]
    values[#values + 1] = order[i]
    values[#values + 1] = row.version .. ' ' .. row.offset .. ' ' .. row.body
  end
  redis.call('HSET', last, unpack(values))
end
-- Of several jobs one may be behind: what others have shown is not taken back.
local shown = tonumber(redis.call('HGET', meta, 'window') or 0)
redis.call('HSET', meta, 'offset', offset, 'window', math.max(shown, window),
  'window_ms', window_ms, 'cut:' .. job, end_cut)

if named_count >= 0 then
  local is_named = {}
  for name = named_at, named_at + named_count - 1 do is_named[ARGV[name]] = true end
  for _, field in ipairs(redis.call('HKEYS', groups)) do
    if not is_named[field] then redis.call('HDEL', groups, field) end
  end
end
for group = together_at, together_at + 3 * (together - 1), 3 do
  redis.call('HSET', groups, ARGV[group], offset .. ' ' .. ARGV[group + 2])
end

local function encode(isin)
  local row = changed[isin]
  return isin .. ' ' .. row.version .. ' ' .. row.trades .. ' ' .. row.body
end
if window_count > 1 then
  message = {header(window, window_count, together_at, together)}
  for _, isin in ipairs(order) do message[#message + 1] = encode(isin) end
  message = table.concat(message, '\n')
end
redis.call('PUBLISH', channel, message)
for _, to in ipairs(listened) do
  local lines = {header(window, window_count, together_at, together, to.market)}
  for _, isin in ipairs(order) do
    if changed[isin].market == to.market then lines[#lines + 1] = encode(isin) end
  end
  redis.call('PUBLISH', to.name, table.concat(lines, '\n'))
end

-- The books: what was read, by the reader's count, and what became of it, by Spark's.
local books, counted, is_counted, total_rows, total_stale = {}, {}, true, 0, 0
for place = 1, partitions do
  local p, read, superseded = take(), tonumber(take()), tonumber(take())
  local blanks, unkept, extra = tonumber(take()), tonumber(take()), tonumber(take())
  local unknown = tonumber(take())
  local log_count = tonumber(take())
  local rows, old = published[place], stale[place]
  local became = {published = rows, superseded = superseded, stale = old, unkept = unkept,
    extra = extra, unknown_issue = unknown}
  local refused = {}
  for refusal = 1, tonumber(take()) do
    local reason, count = take(), tonumber(take())
    became['refused:' .. reason] = count
    refused[refusal] = string.format('"%s":%d', reason, count)
  end
  local skipped = {}
  for place_of_name = 1, tonumber(take()) do
    local name, count = take(), tonumber(take())
    skipped[place_of_name] = string.format('"%s":%d', name, count)
    -- Names are others' words: however many come, the hash stays small.
    local stored = 'skipped:' .. name
    if redis.call('HEXISTS', ledger, p .. ':' .. stored) == 0
        and redis.call('HLEN', ledger) >= MOST_FIELDS then
      stored = 'skipped:other'
    end
    became[stored] = (became[stored] or 0) + count
  end
  books[place] = string.format(
    '{"read":%d,"published":%d,"superseded":%d,"stale":%d,"refused":{%s},"blanks":%d,"unkept":%d,"extra":%d,"skipped":{%s},"unknown_issue":%d}',
    read, rows, superseded, old, table.concat(refused, ','), blanks, unkept, extra,
    table.concat(skipped, ','), unknown)
  redis.call('HINCRBY', ledger, p .. ':read', read)
  local all_blanks = redis.call('HINCRBY', ledger, p .. ':blanks', blanks)
  for name, count in pairs(became) do
    if count ~= 0 then redis.call('HINCRBY', ledger, p .. ':' .. name, count) end
  end
  -- A partition that was added to the log since then began with nothing.
  local before = since['n' .. p] or 0
  is_counted = is_counted and log_count >= 0 and before >= 0
  counted[p] = log_count - before - all_blanks
  total_rows, total_stale = total_rows + rows, total_stale + old
end
if is_counted then
  for p, count in pairs(counted) do redis.call('HSET', ledger, p .. ':log', count) end
  redis.call('HSET', ledger, 'checked', window)
end
redis.call('HSET', ledger, 'upto', end_cut)
redis.call('HINCRBY', ledger, 'batches', 1)
redis.call('HINCRBY', ledger, 'windows', window_count)
redis.call('XADD', batches, 'MAXLEN', '~', window_log, offset .. '-0', 'batch', batch_id,
  'term', term, 'start', start_cut, 'end', end_cut, 'windows', window_count,
  'books', '[' .. table.concat(books, ',') .. ']', 'issues', issues_digest)

local kept = take()
for _ = 1, tonumber(take()) do
  local dead, id, appended = KEYS[7 + take()], take(), take()
  local reason, err, trade, bytes, digest = take(), take(), take(), take(), take()
  -- One that is there already, from before the stream was rolled back, stays.
  redis.pcall('XADD', dead, 'MAXLEN', '~', kept, id,
    'reason', reason, 'error', err, 'trade', trade, 'appended', appended,
    'bytes', bytes, 'sha256', digest)
end
return {'ok', epoch, offset, window_count, total_rows, total_stale,
  #channels, redis.call('HGETALL', ledger)}
