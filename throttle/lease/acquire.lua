-- Take the lease of a job, if nobody else holds it, and say where the job goes on.
--
-- KEYS  meta, lease, last, windows, ledger, batches, groups, the days so far
-- ARGV  job, owner, ttl in ms, log id, cut to start from if there is none, run id of
--       this server, an epoch, should a new one begin, 1 to begin it in any case, the form
--       of what the job is going to publish
--
-- Each holder gets a term of its own, greater than any before; publisher.lua refuses all
-- others. The published stream and the job's books begin anew where their ground is
-- gone: the stream when Redis lost it, the books when the log is another one.
-- Returns {term, cut, epoch, cut since which the books are kept}, or {0, holder}.
local meta, lease, last, windows, ledger, batches, groups, days = unpack(KEYS)
local job, owner, ttl, log_id, first_cut, server, new_epoch, rolled_back, form =
  unpack(ARGV)

local holder = redis.call('GET', lease)
if holder and string.match(holder, ' (.*)$') ~= owner then
  return {0, holder}
end

local epoch = redis.call('HGET', meta, 'epoch')
if not epoch then
  -- Offsets begin at 1 again: what is left of an older stream would be in the way.
  redis.call('DEL', last, windows, groups, days)
  redis.call('HSET', meta, 'offset', 0)
end
if not epoch or rolled_back == '1' or redis.call('HGET', meta, 'server') ~= server then
  -- A server that was restarted may have lost its latest publishes: offsets that
  -- gateways have seen could come again with another content.
  epoch = new_epoch
  redis.call('HSET', meta, 'epoch', epoch, 'server', server)
end

if redis.call('HGET', meta, 'log:' .. job) ~= log_id then
  redis.call('HSET', meta, 'log:' .. job, log_id, 'cut:' .. job, first_cut)
  redis.call('DEL', ledger, batches)
end
local cut = redis.call('HGET', meta, 'cut:' .. job)
if redis.call('EXISTS', ledger) == 0 then
  redis.call('HSET', ledger, 'since', cut, 'upto', cut, 'batches', 0, 'windows', 0)
end

-- Never less than the time in us: a server that was emptied or restored does not give a term
-- again that a forgotten holder may still have.
local now = redis.call('TIME')
local term = math.max(
  tonumber(redis.call('HGET', meta, 'term:' .. job) or 0) + 1,
  now[1] * 1000000 + now[2])
redis.call('HSET', meta, 'term:' .. job, string.format('%.0f', term), 'form', form)
redis.call('SET', lease, string.format('%.0f %s', term, owner), 'PX', ttl)
return {term, cut, epoch, redis.call('HGET', ledger, 'since')}
