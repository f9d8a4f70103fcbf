"""What a batch takes back leaves the windows that it was counted in. Pure, but for
looking back.

Sums lose it here: a partial bar with what it had, below zero. The open, high, low and
close of such a window are asked of the log where it is published
(``standing_prices.py``).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingest.series import is_series
from ingest.trade import Trade
from throttle.analytics.partials.log_source import CutRange
from throttle.analytics.partials.partial_bars import (
    ARROW_SCHEMA,
    OF_PRICES,
    SUMS,
    TRADES,
    one_each,
)
from throttle.analytics.partials.partial_rule import PartialRule, PlacedTrades
from throttle.contract.bars import EXACT, FRACTION_DIGITS, TOO_LARGE
from throttle.standing.look_back import EntryRules, LookBack
from throttle.standing.searched_log import Wanted
from throttle.standing.settled import LoggedTrade, Settled, TakenBack
from throttle.window.row_schema import with_columns

MOST_ENTRIES = 250_000
"""So many entries of the log before a batch are read for it: two seconds. A number,
not a time: a batch that is read again takes back the same.
"""

_NOTHING = Decimal(0)


class Takings(NamedTuple):
    """Partial bars with less than nothing, and how many trades they are of.

    ``done`` and ``left`` count by the partition of the entry that takes back:
    ``left`` are those that change no window.
    """

    partials: pa.Table
    done: Counter[int]
    left: Counter[int]


def takings_of(
    taking: Mapping[str, Collection[int]],
    rules: EntryRules,
    rule: PartialRule,
    part: CutRange,
) -> Takings:
    """Return what the entries of a task take back.

    ``taking`` names the instruments of such entries, and the partitions that have them.
    """
    of_all = {p for partitions in taking.values() for p in partitions}
    partitions = rules.partitions_of(of_all, part.end)
    look = LookBack(rules, taking, part.start, part.end, partitions, MOST_ENTRIES)
    is_own = partial(_is_own, part)

    def still_wanted(settled: Mapping[str, Settled]) -> Wanted:
        return {
            isin: numbers
            for isin, entries in settled.items()
            if (numbers := look.open_numbers(entries, is_own))
        }

    settled = look.settle(still_wanted).values()
    unknown = [one for of_it in settled for one in of_it.unknown if is_own(one)]
    found = [one for of_it in settled for one in of_it.taken_back if is_own(one.by)]
    counted = [one for one in found if one.trade.append_ms >= part.since_ms]
    if rule.keeps_series:
        counted = [
            taken._replace(trade=taken.trade.under(key))
            for taken in counted
            for key in rules.series.keys_of(taken.trade.trade)
        ]
    which, placed, may_change = placed_takings(counted, rule)
    own = zip(which, may_change.to_pylist(), strict=True)
    changed = [counted[n] for n, changes in own if changes]
    done = Counter(
        one.by.partition for one in changed if not is_series(one.trade.trade.isin)
    )
    left = Counter(one.partition for one in (*unknown, *(one.by for one in found)))
    columns = (column.filter(may_change) for column in placed[:2])
    return Takings(_less(*columns), done, left - done)


def table_of(entries: Iterable[LoggedTrade]) -> tuple[list[int], pa.Table]:
    """Return which trades can be summed up, and a table of them (``TRADES``)."""
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


def placed_takings(
    taken_back: Sequence[TakenBack], rule: PartialRule
) -> tuple[list[int], PlacedTrades, pa.ChunkedArray]:
    """Return which trades can be in windows, their places, and whether they leave them.

    A window is changed for as long as the entry that takes a trade back would be in
    time, were it a trade of the window.
    """
    which, table = table_of(one.trade for one in taken_back)
    placed = rule.place(table)
    append_ms = pa.array((taken_back[n].by.append_ms for n in which), pa.int64())
    later = with_columns(placed.trades, {"append_ms": append_ms})
    return which, placed, pc.and_(placed.in_time, rule.place(later).in_time)


def _is_own(part: CutRange, entry: LoggedTrade) -> bool:
    """Tell whether a task has read an entry itself."""
    p, start, end = entry.partition, part.start, part.end
    is_read = start.position(p) < entry.position <= end.position(p)
    return p in part.partitions and is_read


def _less(trades: pa.Table, starts: pa.ChunkedArray) -> pa.Table:
    """Return the partial bars of trades, each of which takes away what it had."""
    size = len(trades)
    ones = pa.repeat(pa.scalar(1, pa.int64()), size)
    table = one_each(trades, starts, ones)
    columns = {name: table[name] for name in ARROW_SCHEMA.names}
    for name in OF_PRICES:
        columns[name] = pa.nulls(size, table[name].type)
    for name in (*SUMS, "trades"):
        columns[name] = pc.negate(columns[name])
    return pa.table({**columns, "taken": ones})
