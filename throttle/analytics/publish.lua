-- Publish what a batch of a query has changed, and its books, in one atomic step; safe to
-- repeat.
--
-- KEYS  meta (of the lease), progress, ledger, batches; then every key that is written
-- ARGV  the head, a JSON object (product_publisher.py), then what is bytes: the rest of the
--       message; each new entry of the log; the arguments of each command
--
-- The head has: channel, job, term, checkpoint, batch, start and end (the cuts, as
-- stored), clock in ms, note (the batch's), takes_up, if it takes up a query whose last cut
-- is not the one stored; keep_as, the key that keeps the message ('' for none); kept, how
-- many entries stay in batches; counts, {field, count} for the ledger; settings, {field,
-- value} for progress; log, the stream of what is over ('' for none), logged, the field of
-- meta for its newest number, entries, how many new ones there are; commands, how many
-- arguments each has.
--
-- A job whose term is not the newest publishes nothing, nor does one whose batch does
-- not begin where this checkpoint's last one ended, nor anybody on a server that was
-- started since the epoch began. The progress is written last: if a
-- command fails, all of it is done again. The message is
-- {"epoch":...,"sequence":...<rest>. Entries of the log have numbers without holes,
-- which stand beside the epoch that they belong to; it keeps those of the newest batches.
-- Returns {ok, sequence}, {repeat}, {fenced, term} or {lost}.
local meta, progress, ledger, batches = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local head = cjson.decode(ARGV[1])
local job, log, logged = head.job, head.log, head.logged

local newest_term = tonumber(redis.call('HGET', meta, 'term:' .. job) or 0)
if newest_term > head.term then return {'fenced', newest_term} end
-- A smaller term than ours: the server has forgotten that it ever gave us one.
if newest_term < head.term then return {'lost'} end
-- As in publisher.lua: on a server that was started since, sequences could come again.
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('HGET', meta, 'server') ~= server then return {'lost'} end
local known = redis.call('HMGET', progress, 'checkpoint', 'cut', 'sequence')
local is_same = known[1] == head.checkpoint
-- What is taken up comes in steps, all of them at one cut.
if not head.takes_up then
  if is_same and known[2] == head['end'] then return {'repeat'} end
  if not is_same or known[2] ~= head.start then return {'lost'} end
end

local epoch = redis.call('HGET', meta, 'epoch')
local sequence = tonumber(known[3] or 0) + 1
local message = string.format('{"epoch":"%s","sequence":%d%s', epoch, sequence, ARGV[2])
local entries_at, commands_at, number = 3, 3 + head.entries, 0
if log ~= '' then
  -- Asked for before anything is written: once a number is given, the entry is there.
  redis.call('XRANGE', log, '0-1', '0-1')
  number = tonumber(redis.call('HGET', meta, logged) or 0)
  -- Its ids begin anew where the sequence does.
  if not known[3] then redis.call('DEL', log) end
end
for _, arguments in ipairs(head.commands) do
  redis.call(unpack(ARGV, commands_at, commands_at + arguments - 1))
  commands_at = commands_at + arguments
end
if head.keep_as ~= '' then redis.call('SET', head.keep_as, message) end
if head.start ~= head['end'] then
  if not is_same or redis.call('EXISTS', ledger) == 0 then
    redis.call('DEL', ledger, batches)
    redis.call('HSET', ledger, 'since', head.start)
  end
  for _, count in ipairs(head.counts) do redis.call('HINCRBY', ledger, count[1], count[2]) end
  redis.call('HINCRBY', ledger, 'batches', 1)
  redis.call('HSET', ledger, 'upto', head['end'])
  redis.call('XADD', batches, 'MAXLEN', '~', head.kept, '*', 'batch', head.batch, 'term',
    head.term, 'sequence', sequence, 'note', head.note)
end
if head.entries > 0 then
  local now = redis.call('TIME')
  local published_us = now[1] .. string.format('%06d', now[2])
  local least = string.format('%d-0', math.max(sequence - head.kept + 1, 0))
  redis.call('HSET', meta, logged, string.format('%d', number + head.entries))
  for i = 1, head.entries do
    redis.call('XADD', log, 'MINID', least, string.format('%d-%d', sequence, i), 'epoch',
      epoch, 'number', string.format('%d', number + i), 'published', published_us, 'bars',
      ARGV[entries_at + i - 1])
  end
end
redis.call('HSET', progress, 'epoch', epoch, 'sequence', sequence, 'clock', head.clock,
  'batch', head.batch, 'checkpoint', head.checkpoint, 'cut', head['end'])
for _, setting in ipairs(head.settings) do
  redis.call('HSET', progress, setting[1], setting[2])
end
redis.call('PUBLISH', head.channel, message)
return {'ok', sequence}
