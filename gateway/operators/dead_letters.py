"""Reads dead letters, newest first, from many streams at once and never all of them.

``Stack`` is pure; ``read_letters`` asks Redis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from gateway.health.jobs import decode_cut, job_names
from gateway.health.log_ends import log_kind
from gateway.operators.operators_schemas import LetterAnswer, LettersAnswer
from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogKind
from throttle.contract.dead_letter import KEPT_BYTES, DeadLetter, text_of
from throttle.contract.ledger import Books, Ledger, add_up

MOST_SCANNED = 10_000
"""Most letters that are looked at for one request."""

PIECE = 1_000
"""Letters that are read at a time, from all streams together: each may have 4 KiB."""

Entry = tuple[bytes, Mapping[bytes, bytes]]


@dataclass(slots=True)
class Stack:
    """The dead letters of one partition a job reads, taken from the newest on."""

    job: str
    partition: int
    key: str
    log: LogKind
    reason: str | None
    letters: list[LetterAnswer] = field(default_factory=list)
    below: str = "+"
    scanned: int = 0
    is_finished: bool = False
    _oldest_ms: int | None = None

    def take(self, entries: Sequence[Entry], asked: int) -> None:
        """Take in what is below ``below``; fewer than were asked for are the last."""
        for entry_id, fields in entries:
            letter = self._letter(entry_id, fields)
            self._oldest_ms = letter.appended_ms
            if self.reason in (None, letter.reason):
                self.letters.append(letter)
        self.scanned += len(entries)
        self.is_finished = len(entries) < asked
        if entries:
            self.below = f"({entries[-1][0].decode()}"

    def may_be_wanted(self, limit: int, least_ms: int | None) -> bool:
        """Say whether what is not looked at yet may be among the newest ``limit``.

        ``least_ms`` is the oldest of those, None while there are fewer.
        """
        if self.is_finished or len(self.letters) >= limit:
            return False
        if least_ms is None or self._oldest_ms is None:
            return True
        return self._oldest_ms >= least_ms

    def _letter(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> LetterAnswer:
        letter = DeadLetter.decode(self.partition, entry_id, fields, self.log)
        return LetterAnswer(
            self.job,
            self.partition,
            str(letter.position),
            letter.reason,
            letter.error,
            # Earlier versions kept all of it.
            text_of(letter.payload[:KEPT_BYTES]),
            letter.size,
            letter.sha256,
            letter.append_ms,
        )


def newest(stacks: Sequence[Stack], limit: int) -> list[LetterAnswer]:
    """Return the newest letters that were found."""
    letters = [letter for stack in stacks for letter in stack.letters]
    letters.sort(key=lambda letter: letter.appended_ms, reverse=True)
    return letters[:limit]


async def read_letters(
    redis: Redis, keys: Keys, limit: int, reason: str | None, job: str | None
) -> LettersAnswer | None:
    """Return the newest dead letters, None if there is no such job.

    Raises RedisError, and ValueError for what the throttle would not have written.
    """
    meta: Any = await redis.hgetall(keys.meta)
    jobs = [name for name in job_names(meta) if job in (None, name)]
    if job is not None and not jobs:
        return None
    stacks = [stack for name in jobs for stack in _stacks(name, meta, keys, reason)]
    open_stacks, letters = stacks, newest(stacks, limit)
    while open_stacks and sum(stack.scanned for stack in stacks) < MOST_SCANNED:
        piece = max(1, min(PIECE // len(open_stacks), PIECE if reason else limit))
        async with redis.pipeline(transaction=False) as pipe:
            for stack in open_stacks:
                pipe.xrevrange(stack.key, stack.below, "-", count=piece)
            for stack, entries in zip(open_stacks, await pipe.execute(), strict=True):
                stack.take(entries, piece)
        letters = newest(stacks, limit)
        least_ms = letters[-1].appended_ms if len(letters) == limit else None
        open_stacks = [s for s in stacks if s.may_be_wanted(limit, least_ms)]
    books = await _books(redis, keys, jobs)
    return LettersAnswer(
        len(letters),
        books.refused,
        books.unkept,
        sum(stack.scanned for stack in stacks),
        not open_stacks,
        letters,
    )


async def _books(redis: Redis, keys: Keys, jobs: Sequence[str]) -> Books:
    async with redis.pipeline(transaction=False) as pipe:
        for job in jobs:
            pipe.hgetall(keys.ledger(job))
        stored = await pipe.execute()
    ledgers = map(Ledger.decode, jobs, stored)
    return add_up(ledger.total for ledger in ledgers if ledger is not None)


def _stacks(
    job: str, meta: Mapping[bytes, bytes], keys: Keys, reason: str | None
) -> list[Stack]:
    cut = decode_cut(job, meta)
    log = log_kind(meta.get(b"log:" + job.encode(), b"").decode())
    return [Stack(job, p, f"{keys.dead(job)}:{p}", log, reason) for p in cut.partitions]
