"""Follows the issue table: reads its changes and tells who is to know."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError

from gateway.protocol.market_issues import MarketIssues
from gateway.stream.counters import Counters
from ingest.issue_table.issue_store import IssueStore, TableAway
from ingest.issue_table.known_issues import Issues
from ingest.issue_table.table_loader import read_on
from ingest.process.outage_reasons import OutageReasons
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogUnusable

LOOK_S = 0.5
"""How often the table is looked at."""

FIRST_LOOK_S = 3.0

log = structlog.get_logger()


class IssueFollower:
    """Knows the issue table as of half a second ago, and for as long as it is away.

    ``on_change`` is told of every other table, in the event loop. A table that was
    emptied, or filled anew, is taken over as a whole. With a ``market``, it is told of
    that market's issues alone.
    """

    def __init__(
        self,
        store: IssueStore,
        on_change: Callable[[Issues], None],
        counters: Counters,
        market: str | None = None,
    ) -> None:
        self._market = market
        self._store = store
        self._on_change = on_change
        self._counters = counters
        self._issues = Issues()
        self._has_looked = asyncio.Event()
        self._failures = 0
        self._reasons = OutageReasons()

    async def first_look(self) -> None:
        """Wait until the table was read once, or could not be; not for long.

        A client that asks for a market before it would be told that there is none.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_S):
                await self._has_looked.wait()

    async def run(self) -> None:
        """Follow the table until cancelled."""
        backoff = ExponentialWithJitterBackoff(cap=2, base=0.05)
        while True:
            pause_s = LOOK_S
            try:
                await self._look()
            except (TableAway, LogUnusable, RedisError, OSError) as error:
                self._failures += 1
                if self._reasons.is_news(in_words(error)):
                    log.warning("the issue table is away", error=in_words(error))
                pause_s = max(LOOK_S, backoff.compute(self._failures))
            self._has_looked.set()
            await asyncio.sleep(pause_s)

    async def _look(self) -> None:
        # In a thread: a store waits for its server, and a large table takes time.
        before = self._issues
        later, served, refused = await asyncio.to_thread(
            _look_on, self._store, before, self._market
        )
        if self._failures:
            log.info("the issue table is back", issues=len(later))
            self._failures = 0
            self._reasons.end()
        if refused:
            self._counters.issue_changes_refused += refused
            log.warning("changes of the issue table are no issues", changes=refused)
        if later is before:
            return
        self._issues = later
        if later.digest != before.digest:
            began_s = time.monotonic()
            self._on_change(served)
            took_ms = round((time.monotonic() - began_s) * 1_000)
            log.info("issue table", issues=len(later), took_ms=took_ms)


def _look_on(
    store: IssueStore, known: Issues, market: str | None
) -> tuple[Issues, Issues, int]:
    """Return the table of now, what of it is served, and how much was refused."""
    later, refused = read_on(store, known)
    served = later
    if market is not None and later is not known:
        served = MarketIssues(later, market)
    # Asked for here, in a thread: they are built once.
    for issues in (later, served):
        _ = issues.digest, issues.markets, issues.sectors, issues.isin_of("")
    return later, served, refused
