-- Publish the windows of one batch in one atomic step; safe to repeat.
--
-- KEYS  meta, last, windows, totals
-- ARGV  channel, job, cut, window_ms, length of the window log, epoch if there is
--       none yet, number of windows; then for each window, oldest first:
--       end, trades read, number of refusals, number of rows,
--       {reason, count} per refusal, one line per row (snapshot.py, Row.encode)
--
-- A window that this job has published before is skipped. A row whose version is not
-- greater than the stored one is stale. Every other window gets the next offset, an
-- entry in the window log, and its part of the one message on the channel.
-- Returns epoch, offset, windows published, rows published, rows stale.
local meta, last, windows, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local channel, job, cut = ARGV[1], ARGV[2], ARGV[3]
local window_log, window_count = ARGV[5], tonumber(ARGV[7])
-- Places in a row's line: "<12 isin> <54 version> <trades> <body>".
local ISIN_END, VERSION_START, VERSION_END, TRADES_START = 12, 14, 67, 69
local VERSION_CHARS = VERSION_END - VERSION_START + 1
local CHUNK = 1000

local epoch = redis.call('HGET', meta, 'epoch')
if not epoch then
  epoch = ARGV[6]
  redis.call('HSET', meta, 'epoch', epoch)
end
local offset = tonumber(redis.call('HGET', meta, 'offset') or '0')
local done = tonumber(redis.call('HGET', meta, 'window:' .. job) or '0')
local now = redis.call('TIME')
local published_us = now[1] .. string.format('%06d', now[2])

local function header(window, count)
  return string.format('{"epoch":"%s","offset":%d,"window":%s,"windows":%d,"published":%s}',
    epoch, offset, window, count, published_us)
end

local function stored_versions(first, rows)
  local versions = {}
  for from = 0, rows - 1, CHUNK do
    local isins = {}
    for row = from, math.min(from + CHUNK, rows) - 1 do
      isins[#isins + 1] = string.sub(ARGV[first + row], 1, ISIN_END)
    end
    for i, value in ipairs(redis.call('HMGET', last, unpack(isins))) do
      versions[from + i - 1] = value and string.sub(value, 1, VERSION_CHARS) or ''
    end
  end
  return versions
end

local merged, order = {}, {}
local function merge(isin, version, trades, body)
  local row = merged[isin]
  if not row then
    row = {trades = 0}
    merged[isin] = row
    order[#order + 1] = isin
  end
  row.version, row.trades, row.body = version, row.trades + trades, body
end

local at, new_windows, new_rows, stale_rows = 8, 0, 0, 0
local newest, message
for _ = 1, window_count do
  local window, read = ARGV[at], tonumber(ARGV[at + 1])
  local refusals, rows = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local first = at + 4 + refusals * 2
  if tonumber(window) > done then
    offset = offset + 1
    local versions = stored_versions(first, rows)
    local lines, changes = {''}, {}
    local superseded, stale = 0, 0
    for row = 0, rows - 1 do
      local line = ARGV[first + row]
      local isin = string.sub(line, 1, ISIN_END)
      local version = string.sub(line, VERSION_START, VERSION_END)
      local space = string.find(line, ' ', TRADES_START, true)
      local trades = tonumber(string.sub(line, TRADES_START, space - 1))
      local body = string.sub(line, space + 1)
      superseded = superseded + trades - 1
      if version > versions[row] then
        lines[#lines + 1] = line
        changes[#changes + 1] = isin
        changes[#changes + 1] = version .. ' ' .. offset .. ' ' .. body
        if window_count > 1 then merge(isin, version, trades, body) end
      else
        stale = stale + 1
      end
    end
    for from = 1, #changes, CHUNK do
      redis.call('HSET', last, unpack(changes, from, math.min(from + CHUNK - 1, #changes)))
    end
    lines[1] = header(window, 1)
    message = table.concat(lines, '\n')
    redis.call('XADD', windows, 'MAXLEN', '~', window_log, offset .. '-0',
      'snapshot', message)
    redis.call('HINCRBY', totals, 'read', read)
    redis.call('HINCRBY', totals, 'published', rows - stale)
    redis.call('HINCRBY', totals, 'superseded', superseded)
    redis.call('HINCRBY', totals, 'stale', stale)
    for refusal = 0, refusals - 1 do
      local a = at + 4 + refusal * 2
      redis.call('HINCRBY', totals, 'refused:' .. ARGV[a], ARGV[a + 1])
    end
    new_windows, new_rows, stale_rows = new_windows + 1, new_rows + rows - stale, stale_rows + stale
    newest = window
  end
  at = first + rows
end

if newest then
  redis.call('HSET', meta, 'offset', offset, 'window', newest, 'window_ms', ARGV[4],
    'window:' .. job, newest, 'cut:' .. job, cut)
  if window_count > 1 then
    message = {header(newest, new_windows)}
    for _, isin in ipairs(order) do
      local row = merged[isin]
      message[#message + 1] = isin .. ' ' .. row.version .. ' ' .. row.trades .. ' ' .. row.body
    end
    message = table.concat(message, '\n')
  end
  redis.call('PUBLISH', channel, message)
end
return {epoch, offset, new_windows, new_rows, stale_rows}
