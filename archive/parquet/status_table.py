"""Trading statuses as an Arrow table: each that was ever added, none twice. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from archive.contract.logged import LoggedStatus
from archive.contract.segment import Product
from archive.parquet.tables import DECIMAL, US, BadWindow
from ingest.trade import InvalidTrade, Trade

STATUS_PRICES = ("expected_price", "expected_size", "lower", "upper")
_TEXTS = ("venue", "reason")
MAY_BE_NULL = (
    *(*_TEXTS, *STATUS_PRICES, "until"),
    *("last_time", "last_seq", "last_price"),
)
"""What a status need not say."""

STATUSES = pa.schema(
    [
        ("isin", pa.string()),
        ("status", pa.string()),
        ("time", US),
        *((name, pa.string()) for name in _TEXTS),
        ("until", US),
        *((name, DECIMAL) for name in STATUS_PRICES),
        ("last_time", US),
        ("last_seq", pa.int64()),
        ("last_price", DECIMAL),
        ("taken", US),
        ("epoch", pa.string()),
        ("number", pa.int64()),
        ("json", pa.string()),
    ]
)
"""One line a status; ``last_*`` is the newest trade before it, ``json`` the status as
it was logged, with the digits that came.
"""

_YEAR_10000_US = 253_402_300_800_000_000

STATUS_ORDER = [(name, "ascending") for name in ("isin", "epoch", "number")]


@dataclass(frozen=True, slots=True)
class StoredStatuses:
    """Statuses (``STATUSES``)."""

    product: ClassVar[Product] = "statuses"

    statuses: pa.Table


def build_statuses(entries: Sequence[LoggedStatus]) -> StoredStatuses:
    """Return the statuses of entries, in ``STATUS_ORDER``. Raises BadWindow."""
    lines = []
    for entry in entries:
        try:
            # One by one: the entry at fault is named.
            lines.append(pa.Table.from_pylist([_line_of(entry)], STATUSES))
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            number = entry.offset
            raise BadWindow(f"entry {number} of the status log: {error}") from None
    return StoredStatuses(pa.concat_tables(lines).sort_by(STATUS_ORDER))


def _trade_of(payload: bytes) -> Trade | None:
    """Return the newest trade before a status; whoever feeds may append anything."""
    try:
        return Trade.from_wire(payload)
    except InvalidTrade:
        return None


def _moment(time_us: int | None) -> int | None:
    """Return a moment that every database can hold; ``json`` has it whatever it is."""
    return time_us if time_us is not None and 0 <= time_us < _YEAR_10000_US else None


def _line_of(entry: LoggedStatus) -> dict[str, Any]:
    said = json.loads(entry.body, parse_float=Decimal)
    trade = _trade_of(entry.trade)
    prices = {name: said.get(name) for name in STATUS_PRICES}
    prices["last_price"] = None if trade is None else trade.price
    return {
        **{name: said.get(name) for name in ("isin", "status", "time", *_TEXTS)},
        **{n: None if price is None else Decimal(price) for n, price in prices.items()},
        "until": _moment(said.get("until")),
        "last_time": None if trade is None else _moment(trade.time_us),
        "last_seq": None if trade is None else trade.seq,
        "taken": entry.published_us,
        "epoch": entry.epoch,
        "number": entry.offset,
        "json": entry.body.decode(),
    }
