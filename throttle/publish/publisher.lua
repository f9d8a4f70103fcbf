-- Publish the windows of one batch, its dead letters and its books in one atomic step;
-- safe to repeat.
--
-- KEYS  meta, last, windows, ledger, batches, groups, the days so far, the dead letters of each
--       partition
-- ARGV  the head, a JSON object (publisher.py), then what is bytes:
--       a line per row (snapshot.py, Row.encode), window by window, oldest first, in each
--       partition by partition; the body of each group that the head names, in its order;
--       of several windows a line per instrument that has several trades in them, "<isin> <sums>"
--       of all of them; of each instrument its ISIN and its day so far as it is stored
--       (day_so_far.py); all of these again, as a message of the channel has them;
--       the bytes of each dead letter, or their beginning
--
-- The head has: channel, job, term, servers (run ids of those that were read, none if the
-- log is Kafka), start and end (the cuts, as stored), window_ms,
-- window_log (its length), batch (its id), instruments (version of the instrument table as text, since it
-- has more digits than a double keeps; 0: none),
-- instruments_digest; no_news, the rows that show no trade of their own ("<end> <isin> stale", or
-- "unshown" in place of the last word, with spaces between them); sums and days, how many of
-- these there are; days_before, of each the day it goes on from ("<start>,<trades>,<volume>,<value>",
-- "" for none), if other jobs publish, too; markets (names); named, the fields of
-- groups that the table names, left out if they are those of the batch before; knows_markets, whether
-- windows say the markets of their rows;
-- chain_at, the place in the stream and the last link's, from which the links of the windows go on
-- (window_chain.py); chain_end, the place that they lead to; chain, that part of the header of all;
-- windows, oldest first: end_ms, chain, counts (rows of each partition), markets (of each row, its
-- place in `markets` from 1 on, if knows_markets), groups: {field, place of its market or 0},
-- starting: the days that start with its rows, as they stand behind them;
-- together, of several windows: the groups of all of them;
-- partitions: number, log (its own count at the end cut, left out if unknown), books (the
-- trades by what became of them, but published and stale), amounts (what is added to the
-- ledger's volumes and values);
-- letters: partition (1 is the first), id, appended, reason, error, bytes (how many there
-- are), sha256; letters_kept, how many a partition keeps.
--
-- restated, if trades are taken back: of each such instrument that has a row in the last window
-- whether it shows a trade of this window (own), and the versions of its trades that do not
-- stand (gone, without the revision).
--
-- A job whose term is not the newest publishes nothing, nor does one whose batch does
-- not begin where the job's last one ended, nor anybody on a server that was started since
-- the epoch began (acquire.lua begins another one there), nor is anything published that was
-- read from another server. A row whose version is not greater than the
-- stored one (trade_order.py) is stale, and so is one without a version, whose trades do not count
-- for the last price: in its place comes what is shown, with the sums of the row, which restates
-- it. A version begins with the instrument's revision. That is raised where the trade that is
-- shown is gone and the row's is older: so the row is newer than anything before, and says its
-- revision.
-- Where nothing was ever shown it is unshown: it is left out, and its day is stored. Every window gets the next offset, an entry in the window log,
-- and its part of the one message on the channel. Who listens to the channel of a market
-- gets the same message with that market's rows and group.
-- Returns {status, ...}:
--   ok, epoch, offset, windows, rows, stale, channels of markets that somebody listens
--     to, how many jobs there are, the ledger: whether it balances says whoever reads it (ledger.py)
--   repeat           this batch was published before
--   fenced, term     another job of this name has taken over
--   lost             the stream is gone, or may be older than what was published: it is
--     older than this job's last batch, or its server was started again
--   elsewhere, there, here  the batch was read from there
--   stale, names     other rows are no news than the head says: nothing was written
--   moved, isins     others have published these, whose days go on from later ones: neither
--   chained, place   others have published: the links go on from there, neither
--   shared           other jobs publish, too, and days_before were not given: neither
--   listened         somebody listens to a market and no places were given: neither
local find, sub = string.find, string.sub
local meta, last, windows, ledger, batches, groups, days = unpack(KEYS)
local head = cjson.decode(ARGV[1])
local channel, job, term = head.channel, head.job, head.term
local window_count, partitions = #head.windows, #head.partitions
-- A row's line is "<key> <58 version> <sums> <body>", a last value
-- "<58 version> <offset> <body>". A key is an ISIN, and behind it the name of a series may be.
local ISIN_CHARS, VERSION_CHARS = 12, 58
local REVISION_CHARS, MOST_REVISIONS = 4, 9999
local NO_REVISION = string.rep('0', REVISION_CHARS)
-- No version without a revision is as great, and every other one is.
local FIRST_REVISION = '0001'
local NO_VERSION = string.rep('0', VERSION_CHARS)
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
redis.call('HLEN', groups)
redis.call('HLEN', days)
for p = 1, partitions do redis.call('XLEN', KEYS[7 + p]) end
if newest_term > term then return {'fenced', newest_term} end
-- A smaller term than ours: the server has forgotten that it ever gave us one.
if newest_term < term or not since then return {'lost'} end
-- Another process than the one that the epoch began on may have lost publishes of somebody
-- who took over meanwhile, with their terms: their offsets would come again.
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('HGET', meta, 'server') ~= server then return {'lost'} end
-- Who reads a window again may join it with a later table: it ends where it did.
local function place(cut) return (string.gsub(cut, '"instruments":%d+,', '')) end
if published_cut and place(published_cut) == place(head['end']) then return {'repeat'} end
-- Of two primaries each has entries that the other lacks.
for _, read in ipairs(head.servers) do
  if read ~= server then return {'elsewhere', read, server} end
end
if published_cut ~= head.start then return {'lost'} end
since = cjson.decode(since)

local epoch = redis.call('HGET', meta, 'epoch')
local offset = tonumber(redis.call('HGET', meta, 'offset'))
local now = redis.call('TIME')
local published_us = now[1] .. string.format('%06d', now[2])
-- Channels of markets that somebody listens to. Patterns do not count.
local channels = redis.call('PUBSUB', 'CHANNELS', channel .. ':*')
if #channels > 0 and not head.knows_markets then return {'listened'} end

-- Of each row its key, its line, and its version, as they are published: each is cut out of
-- the line once, for a window has thousands.
local isin_of, line_of, version_of = {}, ARGV, {}

-- Where the sums of a key's line begin.
local function sums_start(isin) return #isin + VERSION_CHARS + 3 end

-- The JSON object of a key's line.
local function body_of(isin, line)
  return sub(line, find(line, ' ', sums_start(isin), true) + 1)
end

-- The newest version of each instrument that this batch has come across, '' for none; and its
-- stored last value.
local versions, last_values = {}, {}
local function look_up(first, rows)
  for from = first, first + rows - 1, CHUNK do
    local unknown = {}
    for row = from, math.min(from + CHUNK, first + rows) - 1 do
      local line = line_of[row]
      local space = find(line, ' ', ISIN_CHARS + 1, true)
      local isin = sub(line, 1, space - 1)
      isin_of[row], version_of[row] = isin, sub(line, space + 1, space + VERSION_CHARS)
      if not versions[isin] then unknown[#unknown + 1] = isin end
    end
    if #unknown > 0 then
      for i, value in ipairs(redis.call('HMGET', last, unpack(unknown))) do
        versions[unknown[i]] = value and sub(value, 1, VERSION_CHARS) or ''
        last_values[unknown[i]] = value
      end
    end
  end
end

-- Whose trades are taken back, and which do not stand.
local restated = head.restated or {}
for _, of_it in pairs(restated) do
  local is_gone = {}
  for _, version in ipairs(of_it.gone) do is_gone[version] = true end
  of_it.gone = is_gone
end

-- A version among those of its instrument, of which `known` is the newest one
-- (trade_order.as_shown).
local function as_shown(version, known, gone)
  local trade = sub(version, REVISION_CHARS + 1)
  local revision = known == '' and NO_REVISION or sub(known, 1, REVISION_CHARS)
  local shown = revision .. trade
  if shown > known or not gone or not gone[sub(known, REVISION_CHARS + 1)] then
    return shown
  end
  return string.format('%04d', math.min(tonumber(revision) + 1, MOST_REVISIONS)) .. trade
end

-- Which rows are news is decided before anything is written: groups and sums depend on it.
local at, no_news, names, revised = 2, {}, {}, {}
for number, window in ipairs(head.windows) do
  window.rows_at, window.rows = at, 0
  for _, count in ipairs(window.counts) do window.rows = window.rows + count end
  at = at + window.rows
  look_up(window.rows_at, window.rows)
  for row = window.rows_at, window.rows_at + window.rows - 1 do
    local isin, version = isin_of[row], version_of[row]
    local known, of_it = versions[isin], number == window_count and restated[isin]
    if of_it or known >= FIRST_REVISION then
      if version ~= NO_VERSION then version = as_shown(version, known, of_it and of_it.gone) end
      if version >= FIRST_REVISION then revised[row] = version end
    end
    if version > known and version ~= NO_VERSION then
      versions[isin] = version
    else
      no_news[row] = known == '' and 'unshown' or 'stale'
      names[#names + 1] = window.end_ms .. ' ' .. isin .. ' ' .. no_news[row]
    end
  end
end
names = table.concat(names, ' ')
if names ~= head.no_news then return {'stale', names} end

-- Each group as {field, place of its market or 0, body}.
local function with_bodies(groups)
  for _, group in ipairs(groups) do
    group[3] = ARGV[at]
    at = at + 1
  end
  return groups
end
for _, window in ipairs(head.windows) do with_bodies(window.groups) end
local last_window = head.windows[window_count]
local together = window_count > 1 and with_bodies(head.together) or last_window.groups

-- The sums over all windows of the instruments that have several trades in them.
local sums_of = {}
for line = at, at + head.sums - 1 do
  local space = find(ARGV[line], ' ', ISIN_CHARS + 1, true)
  sums_of[sub(ARGV[line], 1, space - 1)] = sub(ARGV[line], space + 1)
end
at = at + head.sums

-- Whose days go on from others than were read: only who publishes changes them.
local days_at, jobs, moved = at, 0, {}
for _, field in ipairs(redis.call('HKEYS', meta)) do
  if sub(field, 1, 4) == 'cut:' then jobs = jobs + 1 end
end
if jobs > 1 then
  if not head.days_before then return {'shared'} end
  for day, before in ipairs(head.days_before) do
    local isin = ARGV[days_at + 2 * day - 2]
    local stored = redis.call('HGET', days, isin)
    stored = stored and string.match(stored, '^%S+ ([^,]+,[^,]+,[^,]+,[^,]+)') or ''
    if stored ~= before then moved[#moved + 1] = isin end
  end
  if #moved > 0 then return {'moved', table.concat(moved, ' ')} end
end
local days_of_message = ARGV[days_at + 2 * head.days]
at = days_at + 2 * head.days + 1

-- Who publishes beside this job changes what is shown, too: the links are of what they left.
local chain_at = string.format('%s %d ', epoch, offset) .. (redis.call('HGET', meta, 'chain') or '')
if head.chain_at ~= chain_at then return {'chained', chain_at} end

-- The header of a message, with groups, or those of one market among them.
local function header(window_ms, count, chain, groups, market)
  local text = string.format(
    '{"epoch":"%s","offset":%d,"window":%d,"windows":%d,"published":%s',
    epoch, offset, window_ms, count, published_us) .. chain
  if head.instruments == '0' then return text .. '}' end
  local bodies = {}
  for _, group in ipairs(groups) do
    if not market or group[2] == market then bodies[#bodies + 1] = group[3] end
  end
  return string.format('%s,"instruments":%s,"groups":[%s]}', text, head.instruments,
    table.concat(bodies, ','))
end

local listened = {}
for _, name in ipairs(channels) do
  listened[#listened + 1] = {name = name, market = -1}
  for place, market in ipairs(head.markets) do
    if name == channel .. ':' .. market then listened[#listened].market = place end
  end
end

-- What the batch changes: the newest row of each instrument, in order of appearance, at which
-- offset it is, and the place of its market.
local changed, changed_at, market_of, order = {}, {}, {}, {}

-- The version and body that are shown of an instrument before the row that is being looked at.
local function shown_of(isin)
  local row, value = changed[isin], last_values[isin]
  if row then return version_of[row], body_of(isin, line_of[row]) end
  local space = find(value, ' ', VERSION_CHARS + 2, true)
  return sub(value, 1, VERSION_CHARS), sub(value, space + 1)
end

-- The sums of a key's line.
local function own_sums(isin, line)
  local start = sums_start(isin)
  return sub(line, start, find(line, ' ', start, true) - 1)
end

local function encode(isin, version, sums, body)
  return isin .. ' ' .. version .. ' ' .. sums .. ' ' .. body
end

local published, stale, message = {}, {}, nil
for partition = 1, partitions do
  published[partition], stale[partition] = 0, 0
end
for number, window in ipairs(head.windows) do
  offset = offset + 1
  local lines = {header(window.end_ms, 1, window.chain, window.groups)}
  local row, count = window.rows_at, 1
  for partition = 1, partitions do
    for _ = 1, window.counts[partition] do
      local isin, line = isin_of[row], line_of[row]
      local of_it, news = number == window_count and restated[isin], no_news[row]
      if of_it and not of_it.own then
        -- What it shows was counted before, and what its window has is superseded.
      elseif not news then
        published[partition] = published[partition] + 1
      elseif version_of[row] ~= NO_VERSION then
        stale[partition] = stale[partition] + 1
      end
      if news == 'stale' then
        local version, body = shown_of(isin)
        line = encode(isin, version, own_sums(isin, line), body)
        line_of[row], version_of[row] = line, version
      elseif not news and revised[row] then
        local version = revised[row]
        local revision = tonumber(sub(version, 1, REVISION_CHARS))
        local body = sub(body_of(isin, line), 1, -2) .. ',"revision":' .. revision .. '}'
        line = encode(isin, version, own_sums(isin, line), body)
        line_of[row], version_of[row] = line, version
      end
      if news ~= 'unshown' then
        count = count + 1
        lines[count] = line
        if not changed[isin] then order[#order + 1] = isin end
        changed[isin], changed_at[isin] = row, offset
        market_of[isin] = window.markets[row - window.rows_at + 1]
      end
      row = row + 1
    end
  end
  message = table.concat(lines, '\n')
  redis.call('XADD', windows, 'MAXLEN', '~', head.window_log, offset .. '-0',
    'snapshot', message .. window.starting, 'sha1', redis.sha1hex(message .. window.starting))
end
local window_ms = last_window.end_ms

for from = 1, #order, CHUNK do
  local values = {}
  for i = from, math.min(from + CHUNK - 1, #order) do
    local isin = order[i]
    local row = changed[isin]
    values[#values + 1] = isin
    values[#values + 1] = version_of[row] .. ' ' .. changed_at[isin] .. ' '
      .. body_of(isin, line_of[row])
  end
  redis.call('HSET', last, unpack(values))
end
for from = days_at, days_at + 2 * head.days - 1, 2 * CHUNK do
  local upto = math.min(from + 2 * CHUNK, days_at + 2 * head.days) - 1
  redis.call('HSET', days, unpack(ARGV, from, upto))
end
-- Of several jobs one may be behind: what others have shown is not taken back.
local shown = tonumber(redis.call('HGET', meta, 'window') or 0)
redis.call('HSET', meta, 'offset', offset, 'window', math.max(shown, window_ms),
  'window_ms', head.window_ms, 'cut:' .. job, head['end'],
  'chain', head.chain_end)

if head.named then
  local is_named = {}
  for _, field in ipairs(head.named) do is_named[field] = true end
  for _, field in ipairs(redis.call('HKEYS', groups)) do
    if not is_named[field] then redis.call('HDEL', groups, field) end
  end
end
for _, group in ipairs(together) do
  redis.call('HSET', groups, group[1], offset .. ' ' .. group[3])
end

local function encode_changed(isin)
  local row, sums = changed[isin], sums_of[isin]
  if not sums then return line_of[row] end
  return encode(isin, version_of[row], sums, body_of(isin, line_of[row]))
end
if window_count > 1 then
  message = {header(window_ms, window_count, head.chain, together)}
  for _, isin in ipairs(order) do message[#message + 1] = encode_changed(isin) end
  message = table.concat(message, '\n')
end
redis.call('PUBLISH', channel, message .. days_of_message)
for _, to in ipairs(listened) do
  local lines = {header(window_ms, window_count, head.chain, together, to.market)}
  for _, isin in ipairs(order) do
    if market_of[isin] == to.market then lines[#lines + 1] = encode_changed(isin) end
  end
  redis.call('PUBLISH', to.name, table.concat(lines, '\n') .. days_of_message)
end

-- The books: what was read, by the reader's count, and what became of it, by Spark's.
local books, counted, is_counted, total_rows, total_stale = {}, {}, true, 0, 0
for place, partition in ipairs(head.partitions) do
  local p, became = partition.number, partition.books
  became.published, became.stale = published[place], stale[place]
  books[place] = cjson.encode(became)
  local amounts = partition.amounts
  for name, count in pairs(became) do
    if type(count) == 'number' then amounts[name] = count end
  end
  for reason, count in pairs(became.refused) do amounts['refused:' .. reason] = count end
  for name, count in pairs(became.skipped) do
    -- Names are others' words: however many come, the hash stays small.
    local stored = 'skipped:' .. name
    if redis.call('HEXISTS', ledger, p .. ':' .. stored) == 0
        and redis.call('HLEN', ledger) >= MOST_FIELDS then
      stored = 'skipped:other'
    end
    amounts[stored] = (amounts[stored] or 0) + count
  end
  for name, count in pairs(amounts) do
    if count ~= 0 or name == 'read' then
      redis.call('HINCRBY', ledger, p .. ':' .. name, count)
    end
  end
  local blanks = tonumber(redis.call('HGET', ledger, p .. ':blanks') or 0)
  -- A partition that was added to the log since then began with nothing.
  local before = since['n' .. p] or 0
  is_counted = is_counted and partition.log ~= nil and before >= 0
  counted[p] = (partition.log or 0) - before - blanks
  total_rows, total_stale = total_rows + became.published, total_stale + became.stale
end
if is_counted then
  for p, count in pairs(counted) do redis.call('HSET', ledger, p .. ':log', count) end
  redis.call('HSET', ledger, 'checked', window_ms)
end
redis.call('HSET', ledger, 'upto', head['end'])
redis.call('HINCRBY', ledger, 'batches', 1)
redis.call('HINCRBY', ledger, 'windows', window_count)
redis.call('XADD', batches, 'MAXLEN', '~', head.window_log, offset .. '-0', 'batch', head.batch,
  'term', term, 'start', head.start, 'end', head['end'], 'windows', window_count,
  'books', '[' .. table.concat(books, ',') .. ']', 'instruments', head.instruments_digest)

for number, letter in ipairs(head.letters) do
  -- One that is there already, from before the stream was rolled back, stays.
  redis.pcall('XADD', KEYS[7 + letter.partition], 'MAXLEN', '~', head.letters_kept, letter.id,
    'reason', letter.reason, 'error', letter.error, 'trade', ARGV[at + number - 1],
    'appended', letter.appended, 'bytes', letter.bytes, 'sha256', letter.sha256)
end
return {'ok', epoch, offset, window_count, total_rows, total_stale,
  #channels, jobs, redis.call('HGETALL', ledger)}
