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
    key: str
    amounts: Amounts


def with_ends(rows: pa.Table) -> pa.Table:
    """Return a batch's rows with the end of their window."""
    ends_ms = pc.divide(rows["window.end"].cast(pa.int64()), _US_PER_MS)
    return rows.append_column(END, ends_ms)


def folded_sums(
    trades: pa.Table,
    by: tuple[str, ...],
    odd: Iterable[OddAmounts],
    in_full: pa.Table | None = None,
) -> dict[Any, bytes]:
    """Return the sums of each window and instrument whose trades one row cannot show.

    There are several, or the one does not count for everything, or a trade of
    ``in_full`` is among them. ``by`` is ``(END, "key")``, or ``("key",)`` for all
    windows together; results are under such tuples, as ``row_sums.py`` has them.
    ``trades`` has these columns (``key`` is the ISIN) and those of ``FOLDED``,
    ``in_full`` these.
    """
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
    for one in odd:
        place = tuple(getattr(one, name) for name in by)
        before = amounts.get(place)
        amounts[place] = one.amounts if before is None else one.amounts.fold(before)
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
