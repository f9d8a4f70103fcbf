"""The ledger's movement over a run."""

import time
from collections.abc import Callable
from typing import Any

import redis

from bench.load.results import Books
from throttle.ledger import Ledger
from throttle.snapshot import Keys

_ASK_EVERY_S = 0.1


def movement(before: Ledger, after: Ledger) -> Books:
    """Return what was added to the books between two readings, and what is wrong.

    ``problems`` are those of the later reading, and sums that do not add up within
    the movement: books that began anew meanwhile cannot.
    """
    one, other = before.total, after.total
    reasons = sorted({*one.refused, *other.refused})
    refused = {r: other.refused.get(r, 0) - one.refused.get(r, 0) for r in reasons}
    moved = Books(
        read=other.read - one.read,
        published=other.published - one.published,
        superseded=other.superseded - one.superseded,
        stale=other.stale - one.stale,
        refused={reason: count for reason, count in refused.items() if count},
        windows=after.windows - before.windows,
        problems=(),
    )
    problems = after.problems()
    if _place(before) != _place(after) or moved.windows < 0:
        problems.append("the books began anew during the run")
    became = moved.published + moved.superseded + moved.stale
    if moved.read != became + sum(refused.values()):
        problems.append(
            f"{moved.read} trades were read in the run, "
            f"{became + sum(refused.values())} are accounted for"
        )
    return Books(
        moved.read,
        moved.published,
        moved.superseded,
        moved.stale,
        moved.refused,
        moved.windows,
        problems,
    )


def read_ledger(client: redis.Redis, namespace: str, job: str) -> Ledger | None:
    """Return a job's ledger as it is, None before its first publish."""
    stored: Any = client.hgetall(Keys(namespace).ledger(job))
    return Ledger.decode(job, stored)


def wait_for_books(
    client: redis.Redis,
    namespace: str,
    job: str,
    after_ms: float,
    within_s: float,
    pause: Callable[[float], None] = time.sleep,
) -> Ledger | None:
    """Wait until every trade appended before a time is accounted for.

    Prefers a ledger that was compared with the log's own count there; returns the
    newest one if none comes ``within_s``, None if there is none at all. Whether it got
    there says ``upto``.
    """
    deadline = time.monotonic() + within_s
    while True:
        ledger = read_ledger(client, namespace, job)
        if ledger is not None and (ledger.checked_ms or 0) >= after_ms:
            return ledger
        if time.monotonic() > deadline:
            return ledger
        pause(_ASK_EVERY_S)


def _place(ledger: Ledger) -> tuple[int, tuple[int, ...]]:
    return ledger.since.end_ms, ledger.since.positions
