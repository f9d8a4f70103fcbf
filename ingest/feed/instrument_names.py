"""Has the instrument table know what a feed's instruments are called."""

from collections.abc import Sequence
from contextlib import closing

import structlog
from redis import RedisError

from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_store import TableAway, TableMoved
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import add_instruments
from ingest.settings import IngestSettings
from ingest.tradelog.contract import LogUnusable

log = structlog.get_logger()


def tell_names(
    settings: IngestSettings,
    listed: Sequence[InstrumentEntry],
    guessed: Sequence[InstrumentEntry] = (),
) -> None:
    """Add a feed's instruments to the table, if ``list_instruments`` says so.

    ``guessed`` ones, which no list names, only fill in what the table does not say.
    Trades come first: a feed goes on without the table, and says so.
    """
    if not settings.list_instruments:
        return
    try:
        with closing(open_instrument_store(settings)) as store:
            loaded = add_instruments(store, listed, guessed)
    except (TableAway, TableMoved, LogUnusable, BadInstruments, RedisError) as error:
        log.warning("the instrument table was not told the names", error=str(error))
        return
    news = loaded.added + loaded.changed
    if news:
        log.info("the instrument table was told the names", instruments=news)
