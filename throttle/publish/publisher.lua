-- Publish the windows of one batch, its dead letters and its books in one atomic step;
-- safe to repeat.
--
-- KEYS  meta, last, windows, ledger, batches, the dead letters of each partition
-- ARGV  channel, job, term, start cut, end cut, window_ms, length of the window log,
--       batch id, number of partitions, number of windows;
--       for each window, oldest first: end, number of rows per partition, one line per
--       row, partition by partition (snapshot.py, Row.encode);
--       for each partition: its number, trades read, superseded, positions without an
--       entry, refusals without a letter, trades beyond the first of an entry, the log's
--       own count at the end cut (-1 if unknown), number of refusals, {reason, count}
--       per refusal, number of names of what is no trade, {name, count} per name;
--       how many dead letters a partition keeps, number of dead letters, for each, by
--       position: which of the partitions (0 is the first), id, append time, reason,
--       error, its bytes or their beginning, how many they are, their digest
--
-- A job whose term is not the newest publishes nothing, nor does one whose batch does
-- not begin where the job's last one ended. A row whose version is not greater than the
-- stored one (trade_order.py) is stale. Every window gets the next offset, an entry in the window log,
-- and its part of the one message on the channel.
-- Returns {status, ...}:
--   ok, epoch, offset, windows, rows, stale, the ledger: whether it balances says
--     whoever reads it (ledger.py)
--   repeat           this batch was published before
--   fenced, term     another job of this name has taken over
--   lost             the stream is gone, or is older than what this job has published
local meta, last, windows, ledger, batches = unpack(KEYS)
local channel, job, term, start_cut, end_cut = unpack(ARGV, 1, 5)
local window_ms, window_log, batch_id = ARGV[6], ARGV[7], ARGV[8]
local partitions, window_count = tonumber(ARGV[9]), tonumber(ARGV[10])
-- Places in a row's line: "<12 isin> <54 version> <trades> <body>".
local ISIN_END, VERSION_START, VERSION_END, TRADES_START = 12, 14, 67, 69
local VERSION_CHARS = VERSION_END - VERSION_START + 1
local CHUNK = 1000
-- Most fields of the ledger before names of what is no trade are put together.
local MOST_FIELDS = 4096

-- Everything that could fail is asked for before anything is written.
local newest_term = tonumber(redis.call('HGET', meta, 'term:' .. job) or 0)
local published_cut = redis.call('HGET', meta, 'cut:' .. job)
local since = redis.call('HGET', ledger, 'since')
redis.call('XLEN', windows)
redis.call('XLEN', batches)
redis.call('HLEN', last)
for p = 0, partitions - 1 do redis.call('XLEN', KEYS[6 + p]) end
if newest_term > tonumber(term) then return {'fenced', newest_term} end
-- A smaller term than ours: the server has forgotten that it ever gave us one.
if newest_term < tonumber(term) or not since then return {'lost'} end
if published_cut == end_cut then return {'repeat'} end
if published_cut ~= start_cut then return {'lost'} end
since = cjson.decode(since)

local epoch = redis.call('HGET', meta, 'epoch')
local offset = tonumber(redis.call('HGET', meta, 'offset'))
local now = redis.call('TIME')
local published_us = now[1] .. string.format('%06d', now[2])
local at = 11
local function take()
  at = at + 1
  return ARGV[at - 1]
end

local function header(window, count)
  return string.format('{"epoch":"%s","offset":%d,"window":%s,"windows":%d,"published":%s}',
    epoch, offset, window, count, published_us)
end

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

-- What the batch changes: the newest row of each issue, in order of appearance.
local changed, order = {}, {}
local function change(isin, version, trades, body)
  local row = changed[isin]
  if not row then
    row = {trades = 0}
    changed[isin] = row
    order[#order + 1] = isin
  end
  row.version, row.trades, row.body, row.offset = version, row.trades + trades, body, offset
end

local published, stale, window, message = {}, {}, nil, nil
for partition = 1, partitions do
  published[partition], stale[partition] = 0, 0
end
for _ = 1, window_count do
  window, offset = take(), offset + 1
  local counts, rows = {}, 0
  for partition = 1, partitions do
    counts[partition] = tonumber(take())
    rows = rows + counts[partition]
  end
  look_up(at, rows)
  local lines = {header(window, 1)}
  for partition = 1, partitions do
    for _ = 1, counts[partition] do
      local line = take()
      local isin = string.sub(line, 1, ISIN_END)
      local version = string.sub(line, VERSION_START, VERSION_END)
      if version > versions[isin] then
        versions[isin] = version
        lines[#lines + 1] = line
        local space = string.find(line, ' ', TRADES_START, true)
        local trades = tonumber(string.sub(line, TRADES_START, space - 1))
        change(isin, version, trades, string.sub(line, space + 1))
        published[partition] = published[partition] + 1
      else
        stale[partition] = stale[partition] + 1
      end
    end
  end
  message = table.concat(lines, '\n')
  redis.call('XADD', windows, 'MAXLEN', '~', window_log, offset .. '-0',
    'snapshot', message)
end

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
if window_count > 1 then
  message = {header(window, window_count)}
  for _, isin in ipairs(order) do
    local row = changed[isin]
    message[#message + 1] = isin .. ' ' .. row.version .. ' ' .. row.trades .. ' ' .. row.body
  end
  message = table.concat(message, '\n')
end
redis.call('PUBLISH', channel, message)

-- The books: what was read, by the reader's count, and what became of it, by Spark's.
local books, counted, is_counted, total_rows, total_stale = {}, {}, true, 0, 0
for place = 1, partitions do
  local p, read, superseded = take(), tonumber(take()), tonumber(take())
  local blanks, unkept, extra = tonumber(take()), tonumber(take()), tonumber(take())
  local log_count = tonumber(take())
  local rows, old = published[place], stale[place]
  local became = {published = rows, superseded = superseded, stale = old, unkept = unkept,
    extra = extra}
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
    '{"read":%d,"published":%d,"superseded":%d,"stale":%d,"refused":{%s},"blanks":%d,"unkept":%d,"extra":%d,"skipped":{%s}}',
    read, rows, superseded, old, table.concat(refused, ','), blanks, unkept, extra,
    table.concat(skipped, ','))
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
  'books', '[' .. table.concat(books, ',') .. ']')

local kept = take()
for _ = 1, tonumber(take()) do
  local dead, id, appended = KEYS[6 + take()], take(), take()
  local reason, err, trade, bytes, digest = take(), take(), take(), take(), take()
  -- One that is there already, from before the stream was rolled back, stays.
  redis.pcall('XADD', dead, 'MAXLEN', '~', kept, id,
    'reason', reason, 'error', err, 'trade', trade, 'appended', appended,
    'bytes', bytes, 'sha256', digest)
end
return {'ok', epoch, offset, window_count, total_rows, total_stale,
  redis.call('HGETALL', ledger)}
