"""Adds statuses to Redis: numbered, once each, with the trade that came before.

One script does all of it, so a status has its place between two trades of its
instrument in the log, and a status that is sent again is not doubled.
"""

from enum import Enum
from hashlib import sha256
from typing import Any
from uuid import uuid4

from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from ingest.redis_keys import StatusKeys
from ingest.statuses.trading_status import TradingStatus
from ingest.tradelog.contract import partition_of
from tickthrottle_client.log_v1 import stream_key

MOST_KEPT = 10_000
"""Statuses that the stream keeps: the newest."""

KEPT_US = 7 * 86_400_000_000
"""Older ones leave it, sixteen with each that is added."""

MOST_SLOTS = 20_000
"""Instruments, times venues and kinds, of which there is a current status."""

REMEMBERED = 16
"""Of each of those, the newest statuses by which a repeated one is known."""

LOOKED_BACK = 500
"""Entries of the trade log that are looked at for the trade before a status."""

_ADD = """
local stream, current, meta, trades = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local slot, time, digest, body, isin = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local taken, epoch, most_kept, oldest = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local most_slots, remembered = tonumber(ARGV[10]), tonumber(ARGV[11])

-- Another server, or one that was started anew, may have lost the newest: numbers that
-- are given again are of another epoch.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local begun, on = redis.call('HGET', meta, 'epoch'), redis.call('HGET', meta, 'server')
if not begun then
  redis.call('DEL', stream, current)
elseif server == '' or not on or on == server then
  epoch = begun
end

local value = redis.call('HGET', current, slot)
local marks, kept = {}, nil
if value then
  local line
  line, kept = string.match(value, '^([^\\n]*)\\n(.*)$')
  for mark in string.gmatch(line, '%S+') do marks[#marks + 1] = mark end
elseif redis.call('HLEN', current) >= most_slots then
  return {'full', 0}
end

-- Marks are in the order of their times.
local at, own = #marks + 1, time .. ':' .. digest
for i, mark in ipairs(marks) do
  if mark == own then return {'repeated', 0} end
end
while at > 1 and tonumber(string.match(marks[at - 1], '^%d+')) > tonumber(time) do
  at = at - 1
end
local is_newest = at == #marks + 1
if #marks >= remembered then
  if at == 1 then return {'too_old', 0} end
  table.remove(marks, 1)
  at = at - 1
end
table.insert(marks, at, own)

local last = ''
if trades then
  local head = '{"isin":"' .. isin .. '"'
  local newest = redis.call('XREVRANGE', trades, '+', '-', 'COUNT', ARGV[12])
  for _, entry in ipairs(newest) do
    local payload = entry[2][2]
    if string.sub(payload, 1, #head) == head
        and not string.find(payload, '"cancels":', 1, true)
        and not string.find(payload, '"corrects":', 1, true)
        and not string.find(payload, '"updates":', 1, true) then
      last = payload
      break
    end
  end
end

redis.call('HSET', meta, 'epoch', epoch, 'server', server)
local number = redis.call('HINCRBY', meta, 'number', 1)
redis.call('XADD', stream, 'MAXLEN', most_kept, number .. '-0', 'taken', taken,
  'epoch', epoch, 'status', body, 'last', last)
for _, entry in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', 16)) do
  local since = tonumber(entry[2][2]) or oldest
  if since < oldest then redis.call('XDEL', stream, entry[1]) end
end
if is_newest then
  kept = number .. '\\n' .. taken .. '\\n' .. body .. '\\n' .. last
end
redis.call('HSET', current, slot, table.concat(marks, ' ') .. '\\n' .. kept)
return {'added', number}
"""


class StatusOutcome(Enum):
    """What became of a status. All but the first two are refusals."""

    ADDED = "added"
    REPEATED = "repeated"
    """The same status was there before, of the same time, with the same fields."""
    TOO_OLD = "too_old"
    """Older than the ``REMEMBERED`` newest: nobody knows whether it was there."""
    FULL = "full"
    """There are ``MOST_SLOTS``, and this would be another one."""


RULES = {
    StatusOutcome.TOO_OLD: f"is older than the newest {REMEMBERED} of its instrument",
    StatusOutcome.FULL: f"there are current statuses of {MOST_SLOTS} instruments",
}
"""What is said of a refusal."""


class StatusLog:
    """Where the statuses of a namespace are added.

    ``partitions`` are those of a trade log in the same Redis, 0 where there is none.
    """

    def __init__(
        self, client: "Redis | AsyncRedis", namespace: str, partitions: int
    ) -> None:
        self._namespace, self._partitions = namespace, partitions
        self._add: Any = client.register_script(_ADD)

    def add(self, status: TradingStatus, now_us: int) -> Any:
        """Add a status and return the script's reply, of an async client to await.

        ``read_reply`` reads it. Raises RedisError; what is sent again is known.
        """
        keys = StatusKeys(self._namespace)
        names = [keys.stream, keys.current, keys.meta]
        if self._partitions:
            partition = partition_of(status.isin, self._partitions)
            names.append(stream_key(self._namespace, partition))
        body = status.encode()
        arguments = (
            *(status.slot, status.time_us, sha256(body).hexdigest()[:12], body),
            *(status.isin, now_us, uuid4().hex[:8], MOST_KEPT, now_us - KEPT_US),
            *(MOST_SLOTS, REMEMBERED, LOOKED_BACK),
        )
        return self._add(keys=names, args=arguments)


def read_reply(reply: list[Any]) -> tuple[StatusOutcome, int]:
    """Return what became of a status, and its number if it was added."""
    word, number = reply
    return StatusOutcome(word.decode() if isinstance(word, bytes) else word), int(
        number
    )
