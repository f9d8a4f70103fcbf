"""Keys of every trade of an instrument: ``trades:<instrument>``. Pure.

An instrument is an ISIN, or a code of the instrument table.
"""

from gateway.protocol.market_instruments import refusal_of
from gateway.protocol.messages import Rejection, check_key
from ingest.instrument_table.known_instruments import Instruments
from ingest.series import is_series
from ingest.trade import ISIN_CHARS
from tickthrottle_client.tick_v1 import ALL, TRADES

MOST_FOLLOWED = 5
"""So many instruments' trades one connection may follow."""


def is_trades_key(key: str) -> bool:
    """Say whether a key asks for every trade of an instrument."""
    return key.startswith(TRADES)


def read_trades_key(text: str, instruments: Instruments) -> str | Rejection:
    """Return the ISIN whose trades a key asks for, or say why there are none."""
    name = text.removeprefix(TRADES)
    if name == ALL or is_series(name):
        rule = f"must name one instrument, as in {TRADES}KR7005930003"
        return Rejection(text, "unknown_key", rule)
    refusal = refusal_of(name, instruments)
    if refusal is not None:
        return Rejection(text, "not_served", refusal)
    isin = instruments.isin_of(name) if len(name) < ISIN_CHARS else None
    rejection = None if isin else check_key(name)
    if rejection is not None:
        return Rejection(text, rejection.code, rejection.message)
    return isin or name
