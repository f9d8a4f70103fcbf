"""Has the instrument table know what a feed says of its instruments' days."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import structlog
from redis import RedisError

from ingest.instrument_table.day_facts import DayFacts, DayNews
from ingest.instrument_table.instrument_entry import BadInstruments
from ingest.instrument_table.instrument_store import TableAway, TableMoved
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import update_days
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogUnusable

TELL_EVERY_S = 3.0
"""The table is told so often at most, all news of that time together."""

log = structlog.get_logger()


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
    teller = _Teller(settings, news)
    thread = threading.Thread(target=teller.run, name="instrument days", daemon=True)
    thread.start()
    try:
        yield
    finally:
        teller.ended.set()
        thread.join()


class _Teller:
    def __init__(self, settings: IngestSettings, news: DayNews) -> None:
        self._settings = settings
        self._news = news
        self._untold: dict[str, DayFacts] = {}
        self._is_away = False
        self.ended = threading.Event()

    def run(self) -> None:
        """Tell until it has ended, and once more."""
        while not self.ended.wait(TELL_EVERY_S):
            self.tell()
        self.tell()

    def tell(self) -> None:
        """Tell the table the news; warn once while that cannot be done."""
        for isin, facts in self._news.take().items():
            self._untold[isin] = self._untold.get(isin, DayFacts()).updated(facts)
        if not self._untold:
            return
        try:
            with closing(open_instrument_store(self._settings)) as store:
                loaded = update_days(store, self._untold)
        except (
            TableAway,
            TableMoved,
            LogUnusable,
            BadInstruments,
            RedisError,
        ) as error:
            if not self._is_away:
                log.warning(
                    "the instrument table was not told of the day", error=str(error)
                )
            self._is_away = True
            return
        self._untold, self._is_away = {}, False
        if loaded.changed:
            log.info(
                "the instrument table was told of the day", instruments=loaded.changed
            )
