"""What trades come to by partition, against plain Python."""

from collections import defaultdict
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import Trade
from tests.throttle.conflated import as_conflated, rows_between
from tests.throttle.payloads import ISINS, MAX_AHEAD_MS, NOW_MS, make_chunk
from throttle.contract.cut import Cut
from throttle.window.batch import assemble
from throttle.window.turnover import of_all

W = 2_000
PER_UNIT = 10**36

texts = st.sampled_from(
    ["1", "100", "0.30", "199500", "0.000000000000000001", "999999999999999999.5"]
)
trades = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 2 * W - 1),
        st.sampled_from(ISINS[:3]),
        st.integers(0, 9),
        texts,
        texts,
    ),
    max_size=12,
)


@given(trades, st.booleans())
def test_a_batch_says_what_each_partition_s_trades_come_to(
    made: list[tuple[int, int, str, int, str, str]], is_live: bool
) -> None:
    """Whatever their digits: in all, and of those that rows show."""
    parts: list[list[tuple[int, bytes]]] = [[], []]
    every: dict[int, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 2)
    newest: dict[tuple[int, str], tuple[tuple[int, int, int], Fraction, Fraction]] = {}
    for partition, ms, isin, time, price, size in sorted(made, key=lambda one: one[1]):
        trade = Trade(isin, NOW_MS * 1000 + time, 1, price, size)
        parts[partition].append((NOW_MS + ms, trade.to_wire()))
        volume, value = Fraction(size), Fraction(price) * Fraction(size)
        before = every[partition]
        every[partition] = [before[0] + volume, before[1] + value]
        order = (time, len(parts[partition]), partition)
        place = (ms // W, isin)
        if place not in newest or order > newest[place][0]:
            newest[place] = order, volume, value
    shown: dict[int, list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 2)
    for (_, _, partition), volume, value in newest.values():
        before = shown[partition]
        shown[partition] = [before[0] + volume, before[1] + value]

    zeros = (0, 0)
    end = Cut(NOW_MS + 2 * W, (1 << 62,) * 2, zeros)
    chunks = [make_chunk(part) for part in parts]
    rows = rows_between(Cut(NOW_MS, zeros, zeros), end, chunks, MAX_AHEAD_MS)
    batch = assemble(as_conflated(rows, W, is_live), W)
    read = of_all(rows)
    for partition, count in enumerate(batch.counts):
        assert _fractions(count.traded["shown"]) == shown[partition]
        rest = _fractions(count.traded["superseded"])
        pairs = zip(rest, shown[partition], strict=True)
        assert [one + other for one, other in pairs] == every[partition]
        assert _fractions(read.get(partition, (0, 0))) == every[partition]


def _fractions(units: tuple[int, int]) -> list[Fraction]:
    return [Fraction(number, PER_UNIT) for number in units]
