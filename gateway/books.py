"""Reads the throttle's ledgers: do the books balance?"""

from typing import Any

from redis.asyncio import Redis

from throttle.ledger import Ledger
from throttle.snapshot import Keys

_CUT = b"cut:"


async def read_ledgers(redis: Redis, keys: Keys) -> list[Ledger]:
    """Return the ledger of every job that publishes to the stream.

    Raises RedisError when the server cannot be asked and ValueError for a ledger the
    throttle would not have written.
    """
    names: Any = await redis.hkeys(keys.meta)
    jobs = sorted(n.removeprefix(_CUT).decode() for n in names if n.startswith(_CUT))
    stored: Any = [await redis.hgetall(keys.ledger(job)) for job in jobs]
    found = [Ledger.decode(job, one) for job, one in zip(jobs, stored, strict=True)]
    return [ledger for ledger in found if ledger is not None]


def imbalances(ledgers: list[Ledger]) -> list[str]:
    """Return a sentence for everything that does not balance, none if all is well."""
    return [
        f"ledger of {ledger.job}: {problem}"
        for ledger in ledgers
        for problem in ledger.problems()
    ]
