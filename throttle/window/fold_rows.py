"""What is said of all trades of an instrument: of one window, or of several. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.row_sums import Amounts, RowSums
from throttle.window.row_schema import FOLDED
from throttle.window.trade_sums import FOLDS, texts, to_amounts

END = "end_ms"
"""The column with the end of a trade's window, ms."""

_ONE = pa.scalar(1, pa.int64())


class OddAmounts(NamedTuple):
    """The amounts of some trades of an instrument in a window that are in no column."""

    end_ms: int
    isin: str
    amounts: Amounts


def sums_by_window(
    trades: pa.Table, odd: Iterable[OddAmounts]
) -> dict[tuple[int, str], bytes]:
    """Return the sums of each window and instrument of which there are several trades.

    ``trades`` has the columns ``end_ms``, ``key`` and those of ``FOLDED``; sums are
    those of ``row_sums.py``.
    """
    of_odd = (((one.end_ms, one.isin), one.amounts) for one in odd)
    return _folded(trades, (END, "key"), of_odd)


def sums_by_instrument(trades: pa.Table, odd: Iterable[OddAmounts]) -> dict[str, bytes]:
    """Return the sums of each instrument of which there are several trades."""
    of_odd = (((one.isin,), one.amounts) for one in odd)
    return {isin: sums for (isin,), sums in _folded(trades, ("key",), of_odd).items()}


def _folded(
    trades: pa.Table,
    by: tuple[str, ...],
    odd: Iterable[tuple[tuple[Any, ...], Amounts]],
) -> dict[Any, bytes]:
    groups = trades.group_by(list(by), use_threads=False).aggregate([*FOLDED.items()])
    several = groups.filter(pc.greater(groups["trades_sum"], _ONE)).combine_chunks()
    columns = {name: several[f"{name}_{how}"] for name, how in FOLDED.items()}
    counts = columns.pop("trades")
    encoded = pc.binary_join_element_wise(counts.cast(pa.string()), texts(columns), ",")
    places = list(zip(*(several[name].to_pylist() for name in by), strict=True))
    sums = dict(zip(places, encoded.cast(pa.binary()).to_pylist(), strict=True))
    amounts: dict[Any, Amounts] = {}
    for place, of_some in odd:
        before = amounts.get(place)
        amounts[place] = of_some if before is None else of_some.fold(before)
    numbers = {place: number for number, place in enumerate(places)} if amounts else {}
    for place in amounts.keys() & numbers.keys():
        row = numbers[place]
        parts = [columns[name][row].as_py() for name in FOLDS]
        exact = amounts[place]
        if None not in parts:
            exact = exact.fold(to_amounts(parts))
        sums[place] = RowSums(counts[row].as_py(), exact).encode()
    return sums
