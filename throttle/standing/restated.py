"""A batch with what it takes back: which rows show what, what its books say. Pure.

With the batch's last window an instrument shows its newest trade that stands. That may
be of a window long before; the trade that the row would have shown is superseded then.

Of a day volume, value and number are what is left. High, low and open are asked of the
day's trades that stand, where a trade that was taken back could have made them: those
are all there as soon as they are as many as the day has. Where the log does not hold
them all, or there are too many, high, low and open stay.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_

from ingest.series import is_series
from throttle.contract.day_so_far import DaySoFar
from throttle.contract.group import decimal_text, units
from throttle.contract.ledger import NOTHING, Turnover
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import NO_VERSION, REVISION_CHARS
from throttle.standing.look_back import LookBack
from throttle.standing.searched_log import EVERYTHING, Wanted
from throttle.standing.settled import LoggedTrade, Settled
from throttle.window.batch import (
    Batch,
    BatchWindow,
    PartitionCount,
    with_sums_of_rows,
)
from throttle.window.traded import FirstTrade

NO_TRADES = b"0,0,0,,"
"""What a row says that stands for no trade, in full."""


@dataclass(frozen=True, slots=True)
class Restated:
    """What becomes of an instrument some of whose trades a batch takes back.

    ``taken_back`` are the trades that it takes back, those that were taken back before
    not among them. ``gone`` are, without revision, the versions of all that do not
    stand. Its row ``is_own`` if it shows a trade of its own window.
    """

    settled: Settled
    taken_back: tuple[LoggedTrade, ...]
    gone: frozenset[bytes]
    is_own: bool


_NO_AMOUNTS = Amounts(0, 0, None, None)

NOTHING_RESTATED: Mapping[str, Restated] = {}


def settle_batch(batch: Batch, look: LookBack) -> dict[str, Settled]:
    """Look back until it is known what stands, or the log, or the bound, ends.

    That is the newest trade, and what the batch takes back: of instruments, and of
    their series that have had a trade that it takes back.
    """

    def still_wanted(settled: Mapping[str, Settled]) -> Wanted:
        wanted: dict[str, Collection[int]] = {}
        for isin, of_it in settled.items():
            of_all = of_it, *_of_series(isin, of_it).values()
            newest = [one.newest for one in of_all]
            if not all(one is not None and look.has_all_of(one) for one in newest):
                wanted[isin] = EVERYTHING
            elif numbers := look.open_numbers(of_it, partial(_is_of, batch)):
                # Whose series lose a trade is known only once it is found; what they
                # show then may be anything that a step goes past.
                wanted[isin] = EVERYTHING if look.rules.series.series else numbers
        return wanted

    def _of_series(isin: str, of_it: Settled) -> dict[str, Settled]:
        gone = [t.trade.trade for t in of_it.taken_back if _is_of(batch, t.by)]
        keys = {key for trade in gone for key in look.rules.series.keys_of(trade)}
        return {key: of_it.under(key) for key in keys - {isin}}

    settled = look.settle(still_wanted)
    of_series = [_of_series(isin, of_it) for isin, of_it in settled.items()]
    return reduce(or_, of_series, settled)


def restate(
    batch: Batch, settled: Mapping[str, Settled]
) -> tuple[Batch, dict[str, Restated]]:
    """Return the batch as it is to be published, and what it takes back."""
    rows = dict(batch.windows[-1].rows)
    partitions = batch.end.partitions
    counts = {
        p: replace(count, traded=dict(count.traded))
        for p, count in zip(partitions, batch.counts, strict=True)
    }
    restated: dict[str, Restated] = {}
    for isin, of_it in sorted(settled.items()):
        now = [one for one in of_it.taken_back if _is_of(batch, one.by)]
        # What is taken back of a series is taken back of its instrument.
        if not is_series(isin):
            for one in now:
                counts[one.by.partition].taken_back += 1
            for entry in of_it.unknown:
                counts[entry.partition].unknown_target += _is_of(batch, entry)
        if not now:
            continue
        newest, placed = of_it.newest, rows.get(isin)
        row = _row_of(isin, newest, placed)
        is_own = newest is not None and _is_of_last_window(batch, newest)
        own = newest if is_own else None
        if placed is not None and placed[1].version != NO_VERSION:
            _count_shown(counts[placed[0]], placed[1], -1)
        partition = now[0].by.partition if placed is None else placed[0]
        if own is not None:
            partition = own.partition
            _count_shown(counts[partition], row, 1)
        rows[isin] = partition, row
        gone = frozenset(one.trade.version[REVISION_CHARS:] for one in of_it.taken_back)
        trades = tuple(one.trade for one in now)
        restated[isin] = Restated(of_it, trades, gone, is_own)
    windows = [*batch.windows[:-1], BatchWindow(batch.end.end_ms, rows)]
    counted = [counts[p] for p in partitions]
    # An instrument with a single trade may have two rows now.
    sums = with_sums_of_rows(batch.sums, windows, restated)
    return replace(batch, windows=windows, counts=counted, sums=sums), restated


def day_without(
    day: DaySoFar, of_it: Restated, window_ms: int
) -> tuple[DaySoFar, bool]:
    """Return the day of an instrument, which has all trades of the batch, without those
    that it takes back; and whether one of them may have made its range or open.
    """
    gone = [one for one in of_it.taken_back if _is_since(day.start_ms, one, window_ms)]
    amounts = day.sums.amounts
    if amounts is None or not gone:
        return day, False
    less = reduce(Amounts.fold, (one.amounts for one in gone))
    left = amounts._replace(
        volume=amounts.volume - less.volume, value=amounts.value - less.value
    )
    is_edge = less.high == amounts.high or less.low == amounts.low
    may_differ = (less.high is not None and is_edge) or day.first in {
        one.version for one in gone
    }
    return day._replace(sums=RowSums(day.sums.trades - len(gone), left)), may_differ


def day_of_trades(
    isin: str, day: DaySoFar, look: LookBack, window_ms: int
) -> DaySoFar | None:
    """Return a day with the range and the open of its trades that stand.

    None if they are not all found. Raises what reading the log raises.
    """
    while True:
        standing = [
            one
            for one in look.settled(isin).standing
            if _is_since(day.start_ms, one, window_ms)
        ]
        if len(standing) >= day.sums.trades or not look.extend():
            break
    return None if len(standing) != day.sums.trades else _of_trades(day, standing)


def _is_since(start_ms: int, one: LoggedTrade, window_ms: int) -> bool:
    return one.append_ms - one.append_ms % window_ms >= start_ms


def _of_trades(day: DaySoFar, standing: Sequence[LoggedTrade]) -> DaySoFar:
    every = reduce(Amounts.fold, (one.amounts for one in standing), _NO_AMOUNTS)
    of_last = (one for one in standing if one.trade.updates.last)
    firsts = (
        FirstTrade(one.version, decimal_text(units(one.trade.price))) for one in of_last
    )
    first = min(firsts, key=lambda one: one.order, default=None)
    opened = (b"", b"") if first is None else first
    return DaySoFar(day.start_ms, RowSums(len(standing), every), *opened)


def _is_of(batch: Batch, entry: LoggedTrade) -> bool:
    p = entry.partition
    return batch.start.position(p) < entry.position <= batch.end.position(p)


def _is_of_last_window(batch: Batch, entry: LoggedTrade) -> bool:
    others_end_ms = batch.start.end_ms
    if len(batch.windows) > 1:
        others_end_ms = batch.windows[-2].end_ms
    return _is_of(batch, entry) and entry.append_ms >= others_end_ms


def _row_of(
    isin: str, newest: LoggedTrade | None, placed: tuple[int, Row] | None
) -> Row:
    version = NO_VERSION if newest is None else newest.version
    if placed is None:
        sums = NO_TRADES
    elif placed[1].version == version:
        return placed[1]
    else:
        sums = placed[1].row_sums.encode()
    return Row(isin, version, sums, b"" if newest is None else newest.trade.to_row())


def _count_shown(count: PartitionCount, row: Row, number: int) -> None:
    """Count a trade of the window as shown (1), or as superseded (-1)."""
    own = Amounts.of_body(row.body)
    if own is None:
        return
    count.superseded -= number
    moved = Turnover(number * own.volume, number * own.value)
    shown, rest = (count.traded.get(n, NOTHING) for n in ("shown", "superseded"))
    count.traded |= {"shown": shown.plus(*moved), "superseded": rest.minus(moved)}
