"""Follows the instrument table: reads its changes and tells who is to know."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError

from gateway.protocol.market_instruments import MarketInstruments
from gateway.stream.counters import Counters
from ingest.instrument_table.instrument_store import InstrumentStore, TableAway
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.table_loader import read_on
from ingest.process.outage_reasons import OutageReasons
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogUnusable

LOOK_S = 0.5
"""How often the table is looked at."""

FIRST_LOOK_S = 3.0

log = structlog.get_logger()


class InstrumentFollower:
    """Knows the instrument table as of half a second ago, and while it is away.

    ``on_change`` is told of every other table, in the event loop. A table that was
    emptied, or filled anew, is taken over as a whole. With a ``market``, it is told of
    that market's instruments alone.
    """

    def __init__(
        self,
        store: InstrumentStore,
        on_change: Callable[[Instruments], None],
        counters: Counters,
        market: str | None = None,
    ) -> None:
        self._market = market
        self._store = store
        self._on_change = on_change
        self._counters = counters
        self._instruments = Instruments()
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
                    log.warning("the instrument table is away", error=in_words(error))
                pause_s = max(LOOK_S, backoff.compute(self._failures))
            self._has_looked.set()
            await asyncio.sleep(pause_s)

    async def _look(self) -> None:
        # In a thread: a store waits for its server, and a large table takes time.
        before = self._instruments
        later, served, refused = await asyncio.to_thread(
            _look_on, self._store, before, self._market
        )
        if self._failures:
            log.info("the instrument table is back", instruments=len(later))
            self._failures = 0
            self._reasons.end()
        if refused:
            self._counters.instrument_changes_refused += refused
            log.warning(
                "changes of the instrument table are no instruments", changes=refused
            )
        if later is before:
            return
        self._instruments = later
        if later.digest != before.digest:
            began_s = time.monotonic()
            self._on_change(served)
            took_ms = round((time.monotonic() - began_s) * 1_000)
            log.info("instrument table", instruments=len(later), took_ms=took_ms)


def _look_on(
    store: InstrumentStore, known: Instruments, market: str | None
) -> tuple[Instruments, Instruments, int]:
    """Return the table of now, what of it is served, and how much was refused."""
    later, refused = read_on(store, known)
    served = later
    if market is not None and later is not known:
        served = MarketInstruments(later, market)
    # Asked for here, in a thread: they are built once.
    for instruments in (later, served):
        _ = (
            instruments.digest,
            instruments.groups,
            instruments.isin_of(""),
        )
    return later, served, refused
