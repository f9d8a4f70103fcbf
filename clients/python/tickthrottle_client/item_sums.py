"""What was traded by what an item stands for, and items that wait. Pure."""

from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, NamedTuple

from tickthrottle_client.updates_v1 import ALL, FIELD, Updates

_EXACT = Context(prec=1_000)
"""Python's own context would round a sum to 28 digits."""


class Traded(NamedTuple):
    """The sums of some trades: of their sizes, of price times size, both extremes.

    ``high`` and ``low`` are None if none of the trades counts for the range.
    """

    trades: int
    volume: Decimal
    value: Decimal
    high: Decimal | None
    low: Decimal | None

    def fold(self, other: "Traded") -> "Traded":
        """Return the sums of the trades of both, exactly."""
        return Traded(
            self.trades + other.trades,
            _EXACT.add(self.volume, other.volume),
            _EXACT.add(self.value, other.value),
            max(_known(self.high, other.high), default=None),
            min(_known(self.low, other.low), default=None),
        )


def _known(*extremes: Decimal | None) -> list[Decimal]:
    return [price for price in extremes if price is not None]


SUMS = Traded._fields[1:]


def traded(item: Mapping[str, Any]) -> Traded | None:
    """Return the sums of the trades that an item stands for.

    An item of its own trade alone says them by ``price`` and ``size``, any other one in
    full. None if it stands for no trades (it was known before), or nobody knows them.
    """
    trades = item.get("trades", 0)
    if "volume" in item:
        high, low = item.get("high"), item.get("low")
        return Traded(trades, item["volume"], item["value"], high, low)
    if trades != 1 or not {"price", "size"} <= item.keys():
        return None
    price, size = item["price"], item["size"]
    return Traded(1, size, _EXACT.multiply(price, size), price, price)


def sums_of(entries: Iterable[Mapping[str, Any]]) -> Traded:
    """Return the sums of trades, by what each counts for (``updates``).

    So the trades of a window add up to its item (``traded``), whatever the item's
    windows were merged of. What takes a trade back is none.
    """
    total = Traded(0, Decimal(0), Decimal(0), None, None)
    for entry in entries:
        if "price" not in entry:
            continue
        price, size = entry["price"], entry["size"]
        counts = Updates.parse(entry["updates"]) if FIELD in entry else ALL
        if not counts.volume:
            size = Decimal(0)
        extreme = price if counts.range else None
        value = _EXACT.multiply(price, size)
        total = total.fold(Traded(1, size, value, extreme, extreme))
    return total


def day_after(
    item: Mapping[str, Any], before: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the day so far as of an item, given that of the item before.

    A dict with ``start`` (ms since 1970), ``trades``, ``volume``, ``value``, ``high``
    and ``low`` (left out if no trade counts for the range) and ``open`` (left out if
    none counts for the last price). An item that says a day takes the place of all
    before, any other one adds to it; None where the day is not known.
    """
    day: dict[str, Any] | None = item.get("day")
    if day is not None:
        return day
    more = traded(item)
    if before is None or more is None:
        return None
    sums = Traded(
        *(before[name] for name in ("trades", "volume", "value")),
        *(before.get(name) for name in ("high", "low")),
    ).fold(more)
    amounts = {name: n for name, n in sums._asdict().items() if n is not None}
    return {**before, **amounts}


def with_day(item: Mapping[str, Any], day: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an item that says this day; none, if the day is not known."""
    others = {name: value for name, value in item.items() if name != "day"}
    return others if day is None else {**others, "day": day}


def read_day(day: dict[str, Any], read: Callable[[Any], Decimal]) -> None:
    """Turn the decimals of a day that came into Decimal. Raises for a bad one."""
    if {*map(type, (day["start"], day["trades"]))} != {int}:
        raise ValueError("a day must have a start and trades")
    for name in ("volume", "value", "high", "low", "open"):
        if name in day or name in SUMS[:2]:
            day[name] = read(day[name])


def as_known(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as one that was known before: it stands for no trades."""
    own = {k: v for k, v in item.items() if k not in SUMS and k != "window"}
    return own | {"trades": 0}


def folded(before: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """Return an item, newer than one before, that stands for the trades of both.

    Sums that nobody knows of one are left out of both.
    """
    if not before["trades"]:
        return item
    rest = {name: value for name, value in item.items() if name not in SUMS}
    if not item["trades"]:
        sums = {name: before[name] for name in SUMS if name in before}
        one = traded(before)
        if not sums and one is not None:
            # It said them by its own price and size.
            sums = one._asdict()
        own = {name: before[name] for name in ("window",) if name in before}
        return {**rest, **own, **sums, "trades": before["trades"]}
    known, more = traded(before), traded(item)
    rest["trades"] = before["trades"] + item["trades"]
    if known is None or more is None:
        return rest
    total = known.fold(more)._asdict().items()
    return rest | {name: value for name, value in total if value is not None}


class WaitingItems:
    """Holds one item of each instrument: the newest, for all trades since the last.

    Of a group it holds the newest figures. Who has waited longest comes first.
    """

    def __init__(self) -> None:
        self._items: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: dict[str, Any]) -> None:
        """Add an item that is newer than all before of its instrument."""
        key = item.get("isin") or item["group"]
        before = self._items.get(key)
        if before is not None and "group" not in item:
            item = folded(before, item)
        self._items[key] = item

    def take(self) -> dict[str, Any]:
        """Return the item that has waited longest. Raises KeyError if there is none."""
        key = next(iter(self._items), "")
        return self._items.pop(key)
