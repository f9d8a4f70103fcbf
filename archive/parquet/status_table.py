"""Trading statuses as an Arrow table: each that was ever added, none twice. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from archive.contract.logged_status import LoggedStatus
from archive.contract.segment import Product
from archive.parquet.tables import DECIMAL, US, BadWindow

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


def _line_of(entry: LoggedStatus) -> dict[str, Any]:
    said = json.loads(entry.body, parse_float=Decimal)
    trade = json.loads(entry.trade, parse_float=Decimal) if entry.trade else {}
    prices = {name: said.get(name) for name in STATUS_PRICES}
    prices["last_price"] = trade.get("price")
    return {
        **{name: said.get(name) for name in ("isin", "status", "time", "until")},
        **{name: said.get(name) for name in _TEXTS},
        **{n: None if price is None else Decimal(price) for n, price in prices.items()},
        "last_time": trade.get("time"),
        "last_seq": trade.get("seq"),
        "taken": entry.published_us,
        "epoch": entry.epoch,
        "number": entry.offset,
        "json": entry.body.decode(),
    }
