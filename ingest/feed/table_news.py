"""Tells the instrument table what a feed says; the feed goes on without it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import structlog
from redis import RedisError

from ingest.feed.telling import telling
from ingest.instrument_table.day_facts import DayFacts, DayNews
from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_store import (
    InstrumentStore,
    TableAway,
    TableMoved,
)
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import Loaded, add_instruments, update_days
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogUnusable

TELL_EVERY_S = 3.0
"""The table is told of days so often at most, all news of that time together."""

log = structlog.get_logger()


def tell_names(
    settings: IngestSettings,
    listed: Sequence[InstrumentEntry],
    guessed: Sequence[InstrumentEntry] = (),
) -> None:
    """Add a feed's instruments to the table, if ``list_instruments`` says so.

    ``guessed`` ones, which no list names, only fill in what the table does not say.
    """
    if not settings.list_instruments:
        return
    loaded = _load(settings, lambda store: add_instruments(store, listed, guessed))
    if isinstance(loaded, Exception):
        log.warning("the instrument table was not told the names", error=str(loaded))
    elif news := loaded.added + loaded.changed:
        log.info("the instrument table was told the names", instruments=news)


@contextmanager
def telling_days(settings: IngestSettings, news: DayNews) -> Iterator[None]:
    """Tell the instrument table what is new, every few seconds and at the end.

    A thread of its own does so: trades never wait for it. Nothing is told unless
    ``list_instruments`` says so. While the table is away, news are kept and tried
    again.
    """
    if not settings.list_instruments:
        yield
        return
    with telling(_DayTeller(settings, news).run, "instrument days"):
        yield


class _DayTeller:
    def __init__(self, settings: IngestSettings, news: DayNews) -> None:
        self._settings = settings
        self._news = news
        self._untold: dict[str, DayFacts] = {}
        self._is_away = False

    def run(self, ended: threading.Event) -> None:
        while not ended.wait(TELL_EVERY_S):
            self._tell()
        self._tell()

    def _tell(self) -> None:
        for isin, facts in self._news.take().items():
            self._untold[isin] = self._untold.get(isin, DayFacts()).updated(facts)
        if not self._untold:
            return
        loaded = _load(self._settings, lambda store: update_days(store, self._untold))
        if isinstance(loaded, Exception):
            if not self._is_away:
                log.warning(
                    "the instrument table was not told of the day", error=str(loaded)
                )
            self._is_away = True
            return
        self._untold, self._is_away = {}, False
        if loaded.changed:
            log.info(
                "the instrument table was told of the day", instruments=loaded.changed
            )


def _load(
    settings: IngestSettings, load: Callable[[InstrumentStore], Loaded]
) -> Loaded | Exception:
    """Return what a load has changed, or why the table cannot be told now."""
    try:
        with closing(open_instrument_store(settings)) as store:
            return load(store)
    except (TableAway, TableMoved, LogUnusable, BadInstruments, RedisError) as error:
        return error
