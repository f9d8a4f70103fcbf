-- Publish what a batch of a query has changed, and its books, in one atomic step; safe to
-- repeat.
--
-- KEYS  meta (of the lease), progress, ledger, batches; then every key that is written
-- ARGV  channel, job, term, checkpoint, batch, start cut, end cut, clock in ms,
--       1 to take up a query whose last cut is not the one stored,
--       begin of the message, its rest, key that keeps the message ('' for none),
--       entries kept in batches, the batch's note,
--       number of {field, count} for the ledger, these, number of {field, value} for
--       progress, these; stream that logs what is over ('' for none), field of meta for
--       its newest number, number of new entries, these; then commands: number of
--       arguments, the arguments
--
-- A job whose term is not the newest publishes nothing, nor does one whose batch does
-- not begin where this checkpoint's last one ended, nor anybody on a server that was
-- started since the epoch began. The progress is written last: if a
-- command fails, all of it is done again. The message is
-- <begin>"epoch":...,"sequence":...<rest>. Entries of the log have numbers without holes,
-- which stand beside the epoch that they belong to; it keeps those of the newest batches.
-- Returns {ok, sequence}, {repeat}, {fenced, term} or {lost}.
local meta, progress, ledger, batches = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local channel, job, term, checkpoint, batch, start_cut, end_cut, clock, takes_up,
  message_begin, message_rest, keep_as, kept, note = unpack(ARGV, 1, 14)
local at = 15
local function take()
  at = at + 1
  return ARGV[at - 1]
end

local newest_term = tonumber(redis.call('HGET', meta, 'term:' .. job) or 0)
if newest_term > tonumber(term) then return {'fenced', newest_term} end
-- A smaller term than ours: the server has forgotten that it ever gave us one.
if newest_term < tonumber(term) then return {'lost'} end
-- As in publisher.lua: on a server that was started since, sequences could come again.
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('HGET', meta, 'server') ~= server then return {'lost'} end
local known = redis.call('HMGET', progress, 'checkpoint', 'cut', 'sequence')
local is_same = known[1] == checkpoint
-- What is taken up comes in steps, all of them at one cut.
if takes_up ~= '1' then
  if is_same and known[2] == end_cut then return {'repeat'} end
  if not is_same or known[2] ~= start_cut then return {'lost'} end
end

local epoch = redis.call('HGET', meta, 'epoch')
local sequence = tonumber(known[3] or 0) + 1
local message = string.format('%s"epoch":"%s","sequence":%d%s', message_begin, epoch,
  sequence, message_rest)
local fields, counts = {}, {}
for i = 1, tonumber(take()) do counts[i] = {take(), take()} end
for _ = 1, tonumber(take()) do
  fields[#fields + 1] = take()
  fields[#fields + 1] = take()
end
local log, logged, entries, number = take(), take(), {}, 0
for i = 1, tonumber(take()) do entries[i] = take() end
if log ~= '' then
  -- Asked for before anything is written: once a number is given, the entry is there.
  redis.call('XRANGE', log, '0-1', '0-1')
  number = tonumber(redis.call('HGET', meta, logged) or 0)
  -- Its ids begin anew where the sequence does.
  if not known[3] then redis.call('DEL', log) end
end
while at <= #ARGV do
  local command = {}
  for i = 1, tonumber(take()) do command[i] = take() end
  redis.call(unpack(command))
end
if keep_as ~= '' then redis.call('SET', keep_as, message) end
if start_cut ~= end_cut then
  if not is_same or redis.call('EXISTS', ledger) == 0 then
    redis.call('DEL', ledger, batches)
    redis.call('HSET', ledger, 'since', start_cut)
  end
  for _, count in ipairs(counts) do redis.call('HINCRBY', ledger, count[1], count[2]) end
  redis.call('HINCRBY', ledger, 'batches', 1)
  redis.call('HSET', ledger, 'upto', end_cut)
  redis.call('XADD', batches, 'MAXLEN', '~', kept, '*', 'batch', batch, 'term', term,
    'sequence', sequence, 'note', note)
end
if #entries > 0 then
  local now = redis.call('TIME')
  local published_us = now[1] .. string.format('%06d', now[2])
  local least = string.format('%d-0', math.max(sequence - kept + 1, 0))
  redis.call('HSET', meta, logged, string.format('%d', number + #entries))
  for i, bars in ipairs(entries) do
    redis.call('XADD', log, 'MINID', least, string.format('%d-%d', sequence, i), 'epoch',
      epoch, 'number', string.format('%d', number + i), 'published', published_us, 'bars',
      bars)
  end
end
redis.call('HSET', progress, 'epoch', epoch, 'sequence', sequence, 'clock', clock,
  'batch', batch, 'checkpoint', checkpoint, 'cut', end_cut, unpack(fields))
redis.call('PUBLISH', channel, message)
return {'ok', sequence}
