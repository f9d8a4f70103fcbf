"""Reads dead letters, newest first, from many streams at once and never all of them.

``Stack`` is pure; ``read_letters`` asks Redis.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from gateway.jobs import decode_cut, job_names
from gateway.log_ends import log_kind
from gateway.ops_answers import LetterAnswer, LettersAnswer
from ingest.log import LogKind
from ingest.redis_keys import append_time_ms
from throttle.ledger import Ledger
from throttle.letters import letter_position
from throttle.snapshot import Keys

MOST_SCANNED = 10_000
"""So many letters are looked at for one request, at most."""

PIECE = 1_000
"""So many are read at a time, from all streams together: each may have 16 KiB."""

SHOWN_BYTES = 2_048
"""So much of a refused trade is shown."""

Entry = tuple[bytes, Mapping[bytes, bytes]]


@dataclass(slots=True)
class Stack:
    """The dead letters of one partition a job reads, taken from the newest on."""

    job: str
    partition: int
    key: str
    log: LogKind
    reason: str | None
    found: list[LetterAnswer] = field(default_factory=list)
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
                self.found.append(letter)
        self.scanned += len(entries)
        self.is_finished = len(entries) < asked
        if entries:
            self.below = f"({entries[-1][0].decode()}"

    def may_be_wanted(self, limit: int, least_ms: int | None) -> bool:
        """Say whether what is not looked at yet may be among the newest ``limit``.

        ``least_ms`` is the oldest of those, None while there are fewer.
        """
        if self.is_finished or len(self.found) >= limit:
            return False
        if least_ms is None or self._oldest_ms is None:
            return True
        return self._oldest_ms >= least_ms

    def _letter(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> LetterAnswer:
        position = letter_position(entry_id, self.log)
        trade, appended = fields.get(b"trade", b""), fields.get(b"appended")
        # Letters of earlier versions are all of a Redis log and tell it by their id.
        at_ms = append_time_ms(position) if appended is None else int(appended)
        return LetterAnswer(
            self.job,
            self.partition,
            str(position),
            _text(fields.get(b"reason", b"")),
            _text(fields.get(b"error", b"")),
            _text(trade[:SHOWN_BYTES]),
            len(trade),
            at_ms,
        )


def newest(stacks: Sequence[Stack], limit: int) -> list[LetterAnswer]:
    """Return the newest letters that were found."""
    every = [letter for stack in stacks for letter in stack.found]
    every.sort(key=lambda letter: letter.appended_ms, reverse=True)
    return every[:limit]


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
    least_ms, wanted = None, stacks
    while wanted and sum(stack.scanned for stack in stacks) < MOST_SCANNED:
        piece = max(1, min(PIECE // len(wanted), PIECE if reason else limit))
        async with redis.pipeline(transaction=False) as pipe:
            for stack in wanted:
                pipe.xrevrange(stack.key, stack.below, "-", count=piece)
            for stack, entries in zip(wanted, await pipe.execute(), strict=True):
                stack.take(entries, piece)
        found = newest(stacks, limit)
        least_ms = found[-1].appended_ms if len(found) == limit else None
        wanted = [stack for stack in stacks if stack.may_be_wanted(limit, least_ms)]
    found = newest(stacks, limit)
    return LettersAnswer(
        len(found),
        await _reasons(redis, keys, jobs),
        sum(stack.scanned for stack in stacks),
        not wanted,
        found,
    )


async def _reasons(redis: Redis, keys: Keys, jobs: Sequence[str]) -> dict[str, int]:
    async with redis.pipeline(transaction=False) as pipe:
        for job in jobs:
            pipe.hgetall(keys.ledger(job))
        stored = await pipe.execute()
    total: Counter[str] = Counter()
    for job, fields in zip(jobs, stored, strict=True):
        ledger = Ledger.decode(job, fields)
        total.update({} if ledger is None else ledger.total.refused)
    return dict(sorted(total.items()))


def _stacks(
    job: str, meta: Mapping[bytes, bytes], keys: Keys, reason: str | None
) -> list[Stack]:
    cut = decode_cut(job, meta)
    log = log_kind(meta.get(b"log:" + job.encode(), b"").decode())
    return [Stack(job, p, f"{keys.dead(job)}:{p}", log, reason) for p in cut.partitions]


def _text(value: bytes) -> str:
    """Return bytes as text; what is not UTF-8 is written with backslashes."""
    return value.decode("utf-8", "backslashreplace")
