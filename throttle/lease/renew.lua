-- Hold on to the lease of a job, or give it back.
--
-- KEYS  meta, lease
-- ARGV  job, term, owner, ttl in ms; 0 gives the lease back
--
-- A lease that ran out, its holder having been asleep, is taken again as long as nobody
-- else has; so is one that a restored server has forgotten. Returns 1 if the term is
-- still the job's, 0 if somebody else took over.
local meta, lease = KEYS[1], KEYS[2]
local job, term, owner, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local mine = term .. ' ' .. owner
local current = tonumber(redis.call('HGET', meta, 'term:' .. job) or 0)
if current > tonumber(term) then
  return 0
end
if ttl > 0 then
  redis.call('SET', lease, mine, 'PX', ttl)
elseif current > 0 and (redis.call('GET', lease) or mine) == mine then
  redis.call('DEL', lease)
  -- For who still works under it: this one did not just run out.
  redis.call('HSET', meta, 'released:' .. job, owner)
end
return 1
