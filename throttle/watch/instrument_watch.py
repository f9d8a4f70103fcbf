"""Follows the instrument table for a job: which one the next batch is joined with."""

import threading
from collections.abc import Callable
from typing import Any, Self

import redis

from ingest.instrument_table.instrument_store import InstrumentStore, TableAway
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.table_loader import read_on
from ingest.process.outage_reasons import OutageReasons
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.redis_faults import in_words

LOOK_S = 0.5
"""How often the table is looked at."""

PATIENCE_S = 0.1
"""How long the plan of a batch waits for the newest table; its window is open still."""

FIRST_PATIENCE_S = 10.0
"""How long a job waits for the table before a window: 100,000 instruments take 5."""

_AWAY = (TableAway, LogUnusable, redis.RedisError, OSError)


class InstrumentWatch:
    """Knows the instrument table. A context manager: it reads in a thread of its own.

    While the table's server is away, or takes its time, the table that is known goes
    on. ``is_known`` says that it was read once.
    """

    def __init__(
        self, open_store: Callable[[], InstrumentStore], *, is_quiet: bool = False
    ) -> None:
        """One that ``is_quiet`` writes no log."""
        self._open_store = open_store
        self._log: Any = None
        if not is_quiet:
            # Loaded where it is needed only: a task of Spark says nothing.
            import structlog

            self._log = structlog.get_logger()
        self.is_known = False
        self._instruments = Instruments()
        self._is_away = False
        self._reasons = OutageReasons()
        self._is_closing = False
        self._asked = 0
        self._answered = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._run, name="instruments", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()

    def newest(self, patience_s: float = PATIENCE_S) -> Instruments:
        """Return the table as it is now, or the one known if that takes too long.

        A change that was acknowledged before the call is in it, unless it took longer.
        """
        with self._changed:
            self._asked += 1
            number = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answered >= number, patience_s)
            return self._instruments

    def _run(self) -> None:
        try:
            store = self._open_store()
        except LogUnusable as error:
            self._failed(error)
            return
        while self._wait():
            asked = self._asked
            try:
                later, refused = read_on(store, self._instruments)
            except _AWAY as error:
                self._failed(error)
                later = self._instruments
            else:
                # Asked for here: it is computed once, and no batch waits for it.
                _ = later.digest
                self._answer_came(later, refused)
            with self._changed:
                self._instruments, self._answered = later, asked
                self._changed.notify_all()
        store.close()

    def _wait(self) -> bool:
        """Wait until somebody asks, or for some time; False once it is closing."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closing or self._asked > self._answered, LOOK_S
            )
            return not self._is_closing

    def _failed(self, error: Exception) -> None:
        self._is_away = True
        is_news = self._reasons.is_news(in_words(error))
        if is_news and (log := self._log):
            log.warning("the instrument table is away", error=in_words(error))

    def _answer_came(self, later: Instruments, refused: int) -> None:
        was_away, self._is_away, self.is_known = self._is_away, False, True
        if was_away:
            self._reasons.end()
        if not (log := self._log):
            return
        if was_away:
            log.info("the instrument table is back", instruments=len(later))
        if refused:
            log.warning(
                "changes of the instrument table are no instruments", changes=refused
            )
        if later is not self._instruments:
            log.info("instrument table", instruments=len(later), version=later.version)
