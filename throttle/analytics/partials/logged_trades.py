"""Trades of the log, looked up one by one, as what a rule places in windows. Pure."""

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from ingest.trade import Trade
from throttle.analytics.partials.partial_bars import TRADES
from throttle.contract.bars import EXACT, FRACTION_DIGITS, TOO_LARGE
from throttle.standing.settled import LoggedTrade

_NOTHING = Decimal(0)


def table_of(entries: Iterable[LoggedTrade]) -> tuple[list[int], pa.Table]:
    """Return a table of trades (``partial_bars.TRADES``), and which of them it has.

    Those are left out of which price times size cannot be summed up.
    """
    kept: list[int] = []
    rows = []
    for number, entry in enumerate(entries):
        trade = entry.trade
        counts = trade.updates
        amounts = _amounts(trade) if counts.volume else (_NOTHING, _NOTHING)
        if amounts is None:
            continue
        price, (size, value) = Decimal(trade.price), amounts
        kept.append(number)
        rows.append(
            {
                "isin": trade.isin,
                "partition": entry.partition,
                "append_ms": entry.append_ms,
                "time": trade.time_us,
                "seq": trade.seq,
                "position": entry.position,
                "last": price if counts.last else None,
                "range": price if counts.range else None,
                "size": size,
                "value": value,
            }
        )
    return kept, pa.Table.from_pylist(rows, TRADES)


def _amounts(trade: Trade) -> tuple[Decimal, Decimal] | None:
    """Return size and value, None if the value has too many digits."""
    size = Decimal(trade.size)
    value = EXACT.multiply(Decimal(trade.price), size).normalize(EXACT)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    fits = value < TOO_LARGE and -exponent <= FRACTION_DIGITS
    return (size, value) if fits else None
