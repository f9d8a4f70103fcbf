"""Follows the statuses in Redis: each is handed out within milliseconds."""

import asyncio
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.stream.counters import Counters
from gateway.stream.statuses.newest_statuses import MOST_REMEMBERED
from gateway.stream.statuses.status_delivery import StatusDesk
from ingest.process.redis_fault import in_words
from ingest.redis_keys import StatusKeys
from ingest.statuses.status_entry import StatusEntry, decode_added, decode_current

BLOCK_MS = 1_000
"""Redis answers after so long if there is nothing new: then the epoch is looked at."""

ANSWER_S = 3.0
AGAIN_S = 1.0

MOST_ENTRIES = 1_000

log = structlog.get_logger()


class StatusFollower:
    """Reads statuses for a desk; ``run`` lives until it is cancelled."""

    def __init__(
        self, redis: Redis, keys: StatusKeys, desk: StatusDesk, counters: Counters
    ) -> None:
        self._redis, self._keys = redis, keys
        self._desk, self._counters = desk, counters
        self._is_away = False

    async def run(self) -> None:
        """Follow the statuses until cancelled."""
        while True:
            try:
                await self._look()
                if self._is_away:
                    log.info("statuses are followed again")
                self._is_away = False
            except (RedisError, OSError) as error:
                if not self._is_away:
                    log.warning("statuses cannot be followed", reason=in_words(error))
                self._is_away = True
                await asyncio.sleep(AGAIN_S)

    async def _look(self) -> None:
        board = self._desk.board
        if board.epoch is None:
            await self._load()
            return
        after: dict[Any, Any] = {self._keys.stream: f"{board.number}-0"}
        async with asyncio.timeout(ANSWER_S):
            reply: Any = await self._redis.xread(after, MOST_ENTRIES, BLOCK_MS)
        if not reply:
            await self._check_numbers(after)
            return
        entries: list[StatusEntry] = []
        due, is_next = board.number + 1, True
        for raw_id, fields in reply[0][1]:
            number = int(raw_id.partition(b"-")[0])
            epoch = fields.get(b"epoch", b"").decode()
            # The first status there ever was begins the epoch.
            board.epoch = board.epoch or epoch
            is_next = epoch == board.epoch and number == due
            if not is_next:
                break
            due += 1
            if (entry := self._decode(fields, number)) is not None:
                entries.append(entry)
        board.number = due - 1
        await self._desk.publish(entries)
        if not is_next:
            await self._load()

    async def _check_numbers(self, after: dict[Any, Any]) -> None:
        """Begin anew if Redis was emptied, or has lost or forgotten the newest ones."""
        board = self._desk.board
        async with asyncio.timeout(ANSWER_S):
            meta: Any = await self._redis.hmget(self._keys.meta, "epoch", "number")
            epoch, number = meta[0], int(meta[1] or 0)
            is_lost = (epoch or b"").decode() != board.epoch or number < board.number
            if not is_lost and number > board.number:
                # One that came just now is there.
                is_lost = not await self._redis.xread(after, 1)
        if is_lost:
            await self._load()

    async def _load(self) -> None:
        """Take over what is current; tell everybody, unless this is the first look."""
        async with (
            asyncio.timeout(ANSWER_S),
            self._redis.pipeline(transaction=True) as pipe,
        ):
            pipe.hmget(self._keys.meta, "epoch", "number")
            pipe.hgetall(self._keys.current)
            pipe.xrevrange(self._keys.stream, count=MOST_REMEMBERED)
            (epoch, number), current, added = await pipe.execute()
        entries = [self._decode(value) for value in current.values()]
        board = self._desk.board
        before, upto = board.epoch, board.number
        # Before anybody has written a status the epoch is empty.
        epoch, number = (epoch or b"").decode(), int(number or 0)
        known = [entry for entry in entries if entry is not None]
        board.replace(epoch, number, known)
        self._remember(added)
        if before is None and known:
            await self._desk.restart(0)
        elif before is None:
            await self._desk.begin()
        else:
            is_on = epoch == before and number >= upto
            await self._desk.restart(number - upto if is_on else None)

    def _remember(self, added: list[Any]) -> None:
        """Have the newest ones be there for clients that come back."""
        board, entries = self._desk.board, list[StatusEntry]()
        due = board.number
        for raw_id, fields in added:
            number = int(raw_id.partition(b"-")[0])
            epoch = fields.get(b"epoch", b"").decode()
            if number != due or epoch != board.epoch:
                break
            due -= 1
            if (entry := self._decode(fields, number)) is not None:
                entries.append(entry)
        board.newest.replace(due + 1, reversed(entries))

    def _decode(self, value: Any, number: int | None = None) -> StatusEntry | None:
        """Decode a value of the hash, or an entry with its number."""
        try:
            return (
                decode_current(value) if number is None else decode_added(value, number)
            )
        except (ValueError, LookupError):
            self._counters.statuses_undecodable += 1
            return None
