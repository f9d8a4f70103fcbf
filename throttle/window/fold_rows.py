"""What is said of all trades of an instrument: of one window, or of several. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.row_sums import Amounts, RowSums
from throttle.window.row_schema import FOLDED
from throttle.window.trade_sums import FOLDS, HIGH, VOLUME, texts, to_amounts

END = "end_ms"
"""The column with the end of a trade's window, ms."""

_US_PER_MS = pa.scalar(1_000, pa.int64())
_ONE, _ZERO = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())


class OddAmounts(NamedTuple):
    """The amounts of some trades of an instrument in a window that are in no column."""

    end_ms: int
    isin: str
    amounts: Amounts


def with_ends(rows: pa.Table) -> pa.Table:
    """Return a batch's rows with the end of their window."""
    ends_ms = pc.divide(rows["window.end"].cast(pa.int64()), _US_PER_MS)
    return rows.append_column(END, ends_ms)


def sums_by_window(
    trades: pa.Table, odd: Iterable[OddAmounts], in_full: pa.Table | None = None
) -> dict[tuple[int, str], bytes]:
    """Return the sums of each window and instrument whose trades one row cannot show.

    There are several, or the one does not count for everything, or a trade of
    ``in_full`` is among them. ``trades`` has the columns ``end_ms``, ``key`` (the ISIN)
    and those of ``FOLDED``, ``in_full`` the first two; sums are those of
    ``row_sums.py``.
    """
    of_odd = (((one.end_ms, one.isin), one.amounts) for one in odd)
    return _folded(trades, (END, "key"), of_odd, in_full)


def sums_by_instrument(
    trades: pa.Table, odd: Iterable[OddAmounts], in_full: pa.Table | None = None
) -> dict[str, bytes]:
    """Return the same of each instrument, all windows together."""
    of_odd = (((one.isin,), one.amounts) for one in odd)
    folded = _folded(trades, ("key",), of_odd, in_full)
    return {isin: sums for (isin,), sums in folded.items()}


def _folded(
    trades: pa.Table,
    by: tuple[str, ...],
    odd: Iterable[tuple[tuple[Any, ...], Amounts]],
    in_full: pa.Table | None,
) -> dict[Any, bytes]:
    groups = trades.group_by(list(by), use_threads=False).aggregate([*FOLDED.items()])
    needs = _needs_sums(groups)
    if in_full is not None:
        needs = pc.or_(needs, pc.is_in(_places(groups, by), _places(in_full, by)))
    several = groups.filter(needs).combine_chunks()
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
    for place, exact in amounts.items():
        row = numbers.get(place)
        if row is None:
            if exact.are_partial:
                sums[place] = RowSums(1, exact).encode()
            continue
        parts = [columns[name][row].as_py() for name in FOLDS]
        every = exact if parts[0] is None else exact.fold(to_amounts(parts))
        sums[place] = RowSums(counts[row].as_py(), every).encode()
    return sums


def _places(table: pa.Table, by: tuple[str, ...]) -> pa.Array:
    columns = (table[name].cast(pa.string()) for name in by)
    return pc.binary_join_element_wise(*columns, " ").combine_chunks()


def _needs_sums(groups: pa.Table) -> pa.ChunkedArray:
    """Tell which groups' trades are not said by the price and size of one."""
    folded = {name: groups[f"{name}_{how}"] for name, how in FOLDED.items()}
    needs = pc.greater(folded["trades"], _ONE)
    # Those of a trade in no column are null, and so is its extreme.
    has_no_range = pc.and_(pc.is_null(folded[HIGH]), pc.is_valid(folded[VOLUME[0]]))
    has_no_volume = [pc.equal(folded[name], _ZERO).fill_null(False) for name in VOLUME]
    return pc.or_(needs, pc.or_(has_no_range, pc.and_(*has_no_volume)))
