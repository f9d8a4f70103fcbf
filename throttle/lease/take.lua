-- Take the lease of a name that is no job, if nobody else holds it.
--
-- KEYS  meta, lease
-- ARGV  name, owner, ttl in ms
--
-- Terms are as those of jobs (acquire.lua). Returns {term}, or {0, holder}.
local meta, lease = KEYS[1], KEYS[2]
local name, owner, ttl = ARGV[1], ARGV[2], ARGV[3]
local holder = redis.call('GET', lease)
if holder and string.match(holder, ' (.*)$') ~= owner then
  return {0, holder}
end
local now = redis.call('TIME')
local term = math.max(
  tonumber(redis.call('HGET', meta, 'term:' .. name) or 0) + 1,
  now[1] * 1000000 + now[2])
redis.call('HSET', meta, 'term:' .. name, string.format('%.0f', term))
redis.call('SET', lease, string.format('%.0f %s', term, owner), 'PX', ttl)
return {string.format('%.0f', term)}
