"""The ledger's movement over a run."""

import time
from collections.abc import Callable

from loadtest.results import BookMovement
from throttle.audit.published import PublishedHistory
from throttle.contract.ledger import Ledger, imbalance

_ASK_EVERY_S = 0.1


def movement(before: Ledger, after: Ledger) -> BookMovement:
    """Return what was added to the books between two readings, and what is wrong.

    ``problems`` are those of the later reading, and sums that do not add up within
    the movement: books that began anew meanwhile cannot.
    """
    moved = after.total.since(before.total)
    windows = after.windows - before.windows
    problems = after.problems()
    if before.since != after.since or windows < 0:
        problems.append("the books began anew during the run")
    problems += imbalance("in the run", moved)
    return BookMovement(
        # Trades, not entries: of a decoder an entry may hold none, or several.
        moved.read + moved.extra - sum(moved.skipped.values()),
        moved.published,
        moved.superseded,
        moved.stale,
        moved.refused,
        windows,
        problems,
        moved.not_last,
    )


def wait_for_books(
    past: PublishedHistory,
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
        ledger = past.ledger(job)
        if ledger is not None and (ledger.checked_ms or 0) >= after_ms:
            return ledger
        if time.monotonic() > deadline:
            return ledger
        pause(_ASK_EVERY_S)
