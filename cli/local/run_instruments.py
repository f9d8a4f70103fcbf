"""What the instruments of a run are called: the file that says so."""

from pathlib import Path

from cli.local.feed_keys import read_keys
from cli.local.settings import RunSettings
from ingest.adapters.listing import encode_listing
from ingest.adapters.run_exchange import find_instruments
from ingest.exchanges.known import find_adapter
from ingest.instrument_table.instrument_list import read_list
from ingest.sources.exchange_options import ExchangeOptions
from ingest.sources.market import encode_instruments
from ingest.sources.simulator import Simulator
from tickthrottle_client.key_v1 import SymbolKeys


def instruments_file_of(
    settings: RunSettings, folder: Path, keys: SymbolKeys | None = None
) -> Path | None:
    """Return the file that names a run's instruments, None if they have no names.

    ``keys`` are those of a list's symbols without an ISIN. The simulated market's and
    an exchange's is written into ``folder``. Raises BadInstruments for a list of the
    user's, and AdapterFault for an exchange that cannot be had, or whose keys are
    missing.
    """
    own = settings.instruments_file
    if own is not None:
        read_list(own, keys=keys)
    if settings.exchange is not None:
        text = _list_of_exchange(settings.exchange, settings.feed_symbols, own)
    elif settings.is_simulated:
        text = encode_instruments(Simulator().listing())
    else:
        return own
    if own is not None:
        return own
    path = folder / "instruments.csv"
    path.write_text(text, encoding="utf-8")
    return path


def _list_of_exchange(name: str, symbols: str, own: Path | None) -> str:
    kind = find_adapter(name)
    read_keys(kind)
    chosen = "" if own is not None and symbols == "*" else symbols
    options = ExchangeOptions(symbols=chosen, instruments_file=own)
    return encode_listing(kind, find_instruments(kind, options))
