"""Windows computed again from the trade log's entries, trade by trade. Pure.

In plain Python, without Spark and without columns: it shares with the job the rules of
a trade (``ingest/trade.py``), of the order (``trade_order.py``) and of the cut
(``cut.py``), and nothing of how they are applied to thousands at a time. Sums are made
here in decimals; how a row writes them is the contract's (``row_sums.py``).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, Inexact
from itertools import repeat
from typing import NamedTuple

from ingest.trade import (
    MAX_ENTRY_BYTES,
    InvalidTrade,
    Trade,
    check_not_ahead,
    read_wire,
)
from ingest.tradelog.contract import Chunk
from throttle.contract import cut
from throttle.contract.group import FRACTION_DIGITS
from throttle.contract.ledger import NOTHING, BatchEntry, Books, Turnover
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import (
    NO_VERSION,
    REVISION_CHARS,
    encode_version,
    is_newer,
)
from throttle.window.decoder import Decoder, Judged, Skipped, decode
from throttle.window.series_rows import NO_SERIES, SeriesRules
from tickthrottle_client.updates_v1 import ALL, FIELD, Updates

CANCELLED = "cancel"
"""Under which name entries are counted that are no trades and take one back."""

_UPDATES = f'"{FIELD}"'.encode()
# Of a trade of the usual form, whose further fields come behind these two.
_PRICE_AND_SIZE = re.compile(rb'"price":"([0-9.]+)","size":"([0-9.]+)"')
# A value has up to 72 digits, a sum a few more: none is ever rounded.
_EXACT = Context(prec=200, traps=[Inexact])

Order = tuple[int, int, int]
"""Time, seq and position of a trade, by which ``encode_version`` orders."""


class Entry(NamedTuple):
    """One entry of the trade log."""

    partition: int
    position: int
    append_ms: int
    payload: bytes


def entries_of(partition: int, chunk: Chunk) -> Iterator[Entry]:
    """Return the entries of a chunk."""
    columns = (chunk.positions, chunk.append_ms, chunk.payloads)
    return map(Entry, repeat(partition), *(column.to_pylist() for column in columns))


@dataclass(frozen=True, slots=True)
class WindowRule:
    """What decides a window's content besides its entries.

    Entries take back what is behind the cut ``since``, where the job's books begin.
    """

    window_ms: int
    max_ahead_ms: int
    decoder: Decoder | None = None
    max_bytes: int = MAX_ENTRY_BYTES
    series: SeriesRules = NO_SERIES
    since: cut.Cut | None = None

    def first_of(self, partition: int) -> int:
        """Return the last position of a partition that no entry takes back."""
        return cut.NOWHERE if self.since is None else self.since.position(partition)

    def window_of(self, append_ms: int, start_ms: int, end_ms: int) -> int:
        """Return the end of the window an entry between two cuts belongs to."""
        return cut.window_end(append_ms, start_ms, end_ms, self.window_ms)

    def judge(
        self, entry: Entry, cuts_ms: tuple[int, int] | None = None
    ) -> Sequence[Judged]:
        """Return an entry's trade, or why it is refused; of a decoder all it holds.

        ``cuts_ms`` are those it stands between, if it was cut yet.
        """
        stamp_ms, cuts_us = entry.append_ms, None
        if cuts_ms is not None:
            after_ms, before_ms = cuts_ms
            stamp_ms = min(stamp_ms, before_ms - 1)
            cuts_us = after_ms * 1000, before_ms * 1000
        judged = decode(entry.payload, self.decoder, self.max_bytes)
        return [self._timely(one, stamp_ms, cuts_us) for one in judged]

    def _timely(
        self, one: Judged, stamp_ms: int, cuts_us: tuple[int, int] | None
    ) -> Judged:
        if not isinstance(one, Trade):
            return one
        one = self.series.labelled(one)
        try:
            check_not_ahead(one, stamp_ms * 1000, self.max_ahead_ms * 1000, cuts_us)
        except InvalidTrade as error:
            return error
        return one

    def read(
        self, entry: Entry, cuts_ms: tuple[int, int]
    ) -> tuple[str, int, int] | Sequence[Judged]:
        """Return ISIN, time (us) and seq of an entry's trade, or what else it holds.

        Trades of a usual form are not decoded whole, which takes three times as long,
        unless they say what they count for, or there are series.
        """
        is_usual = self.decoder is None and not self.series.is_any
        if is_usual and _UPDATES not in entry.payload:
            known = read_wire(entry.payload, self.max_bytes)
            stamp_ms = min(entry.append_ms, cuts_ms[1] - 1)
            latest_us = (stamp_ms + self.max_ahead_ms) * 1000
            if known is not None and known[1] <= latest_us:
                return known
        return self.judge(entry, cuts_ms)


class ComputedRow(NamedTuple):
    """An instrument in a window: its row as it is if it is news; its trade's partition.

    ``arrivals`` are order and append time of those trades that were newer, or came
    earlier, than the one before them in the list. ``price`` is its decimal text. Where
    no trade counts for the last price, the row has ``NO_VERSION``, no body, and none.
    """

    row: Row
    partition: int
    arrivals: Sequence[tuple[Order, int]]
    price: str = "0"

    def first_news_ms(self, before: bytes | None) -> int | None:
        """Return when the first trade newer than a version was appended."""
        # The revision that was shown is that of the trades that come then, too.
        known = None if before is None else before[REVISION_CHARS:]
        arrivals = ((encode_version(*order), ms) for order, ms in self.arrivals)
        news = (ms for v, ms in arrivals if is_newer(v[REVISION_CHARS:], known))
        return min(news, default=None)


def _by_name() -> defaultdict[int, Counter[str]]:
    return defaultdict(Counter)


@dataclass(slots=True)
class RecomputedBatch:
    """A batch computed again.

    ``windows`` has the rows by window end and ISIN; a quiet window is not in it.
    ``read`` counts entries by partition, ``extra`` trades beyond the first of an entry,
    ``superseded``, ``not_last``, ``refused`` and ``skipped`` what became of them,
    ``refused`` by reason and ``skipped`` by name, too. A row that turns out to be no
    news is stale, not superseded. ``instruments`` counts trades by partition and
    instrument. ``traded`` is what all trades come to, by name: those ``read``, and
    those that are ``not_last``. Of instruments ``taking_back`` entries name trades that
    do not stand any more; ``taken_back`` were found, ``unknown_target`` were not.
    """

    windows: dict[int, dict[str, ComputedRow]] = field(default_factory=dict)
    read: Counter[int] = field(default_factory=Counter)
    extra: Counter[int] = field(default_factory=Counter)
    superseded: Counter[int] = field(default_factory=Counter)
    not_last: Counter[int] = field(default_factory=Counter)
    refused: defaultdict[int, Counter[str]] = field(default_factory=_by_name)
    skipped: defaultdict[int, Counter[str]] = field(default_factory=_by_name)
    instruments: Counter[tuple[int, str]] = field(default_factory=Counter)
    traded: dict[str, Turnover] = field(default_factory=dict)
    taking_back: set[str] = field(default_factory=set)
    taken_back: int = 0
    unknown_target: int = 0

    def count(self, partition: int, one: InvalidTrade | Skipped) -> None:
        """Count what is not published: a refused trade, or an entry that is none."""
        if isinstance(one, Skipped):
            self.skipped[partition][one.name] += 1
        else:
            self.refused[partition][one.reason] += 1

    def add_traded(self, name: str, amounts: Amounts) -> None:
        """Add what some trades come to."""
        before = self.traded.get(name, NOTHING)
        self.traded[name] = before.plus(amounts.volume, amounts.value)

    def books(self) -> Books:
        """Return what is known of its books: not what was news and what stale."""
        return Books(
            read=self.read.total(),
            extra=self.extra.total(),
            superseded=self.superseded.total(),
            not_last=self.not_last.total(),
            refused=sum(self.refused.values(), Counter()),
            skipped=sum(self.skipped.values(), Counter()),
            taken_back=self.taken_back,
            unknown_target=self.unknown_target,
        )


class _Sums:
    """What some trades come to, each by what it counts for."""

    __slots__ = ("count", "high", "low", "value", "volume")

    def __init__(self) -> None:
        self.count = 0
        self.volume = self.value = Decimal(0)
        self.high: Decimal | None = None
        self.low: Decimal | None = None

    def add(self, price: Decimal, size: Decimal, updates: Updates) -> None:
        self.count += 1
        if updates.volume:
            self.volume = _EXACT.add(self.volume, size)
            self.value = _EXACT.fma(price, size, self.value)
        if updates.range:
            self.high = price if self.high is None else max(self.high, price)
            self.low = price if self.low is None else min(self.low, price)

    def amounts(self) -> Amounts:
        """Return it in the contract's whole numbers."""
        volume, value = (_units(number) for number in (self.volume, self.value))
        high, low = (None if n is None else _units(n) for n in (self.high, self.low))
        return Amounts(volume, value, high, low)


def _units(number: Decimal) -> int:
    return int(_EXACT.scaleb(number, FRACTION_DIGITS))


class _Trades:
    """An instrument's trades in a window; ``is_in_full`` if one counts in part."""

    __slots__ = ("arrivals", "is_in_full", "newest", "not_last", "sums", "trade")

    def __init__(self) -> None:
        self.sums = _Sums()
        self.not_last = _Sums()
        self.is_in_full = False
        self.newest: tuple[Order, int] = ((-1, -1, -1), -1)
        self.trade: bytes | Trade | None = None
        self.arrivals: list[tuple[Order, int]] = []

    def add(self, order: Order, entry: Entry, trade: Trade | None = None) -> None:
        if trade is not None:
            texts, updates = (trade.price, trade.size), trade.updates
        elif usual := _PRICE_AND_SIZE.search(entry.payload):
            texts, updates = (usual[1].decode(), usual[2].decode()), ALL
        else:
            raise ValueError(f"{entry.payload!r}: is not of the usual form")
        price, size = map(Decimal, texts)
        self.sums.add(price, size, updates)
        self.is_in_full |= updates != ALL
        if not updates.last:
            self.not_last.add(price, size, updates)
            return
        # One place in two partitions: the greater partition decides, as in the job. Of
        # equal trades in one entry the last.
        if (order, entry.partition) >= self.newest:
            self.newest = order, entry.partition
            self.trade = trade or entry.payload
        arrivals = self.arrivals
        if not arrivals or order > arrivals[-1][0] or entry.append_ms < arrivals[-1][1]:
            arrivals.append((order, entry.append_ms))

    def row(self, isin: str) -> ComputedRow:
        """Return the row of these trades."""
        sums = RowSums(self.sums.count, self.sums.amounts())
        encoded = sums.encode() if self.is_in_full or sums.trades > 1 else ONE
        order, partition = self.newest
        trade = self.trade
        if trade is None:
            return ComputedRow(Row(isin, NO_VERSION, encoded, b""), partition, ())
        if isinstance(trade, bytes):
            trade = Trade.from_wire(trade)
        row = Row(isin, encode_version(*order), encoded, trade.to_row())
        return ComputedRow(row, partition, self.arrivals, trade.price)


def recompute(
    entries: Iterable[Entry], start_ms: int, end_ms: int, rule: WindowRule
) -> RecomputedBatch:
    """Compute the windows of one batch from the entries between its two cuts."""
    batch = RecomputedBatch()
    instruments: defaultdict[tuple[int, str], _Trades] = defaultdict(_Trades)
    for entry in entries:
        batch.read[entry.partition] += 1
        window = rule.window_of(entry.append_ms, start_ms, end_ms)
        held = rule.read(entry, (start_ms, end_ms))
        if isinstance(held, tuple):
            isin, time_us, seq = held
            instruments[window, isin].add((time_us, seq, entry.position), entry)
            batch.instruments[entry.partition, isin] += 1
            continue
        batch.extra[entry.partition] += len(held) - 1
        for one in held:
            if isinstance(one, Trade) and one.takes_back is not None:
                batch.taking_back.add(one.isin)
            if isinstance(one, Trade) and not one.is_trade:
                batch.count(entry.partition, Skipped(CANCELLED))
            elif isinstance(one, Trade):
                order = *one.version, entry.position
                keys = list(rule.series.keys_of(one))
                for key in keys:
                    under = replace(one, isin=key)
                    instruments[window, key].add(order, entry, under)
                    batch.not_last[entry.partition] += not one.updates.last
                batch.instruments[entry.partition, one.isin] += 1
                # A series counts a trade of its instrument once more.
                batch.extra[entry.partition] += len(keys) - 1
            else:
                batch.count(entry.partition, one)
    batch.superseded += batch.read
    batch.superseded += batch.extra
    batch.superseded.subtract(batch.not_last)
    for others in (batch.refused, batch.skipped):
        for partition, names in others.items():
            batch.superseded[partition] -= names.total()
    for (window, isin), trades in instruments.items():
        batch.add_traded("read", trades.sums.amounts())
        batch.add_traded("not_last", trades.not_last.amounts())
        computed = trades.row(isin)
        batch.windows.setdefault(window, {})[isin] = computed
        if computed.row.version != NO_VERSION:
            batch.superseded[computed.partition] -= 1
    return batch


def holder(
    batches: Sequence[BatchEntry], partition: int, position: int
) -> BatchEntry | None:
    """Return the batch that read an entry of the log, None if it is not recorded."""
    for batch in batches:
        if batch.start.position(partition) < position <= batch.end.position(partition):
            return batch
    return None
