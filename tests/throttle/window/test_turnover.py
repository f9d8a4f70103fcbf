"""What rows and books say of trades that may count for a part, in plain Python."""

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import Trade
from tests.throttle.conflated import as_conflated, rows_between
from tests.throttle.payloads import ISINS, MAX_AHEAD_MS, NOW_MS, make_chunk
from throttle.contract.cut import Cut
from throttle.contract.row_sums import RowSums
from throttle.contract.trade_order import NO_VERSION, encode_version
from throttle.window.batch import Batch, assemble

W = 2_000
PER_UNIT = 10**36


class Made(NamedTuple):
    """A trade of a batch; the time of its append counts from the batch's start."""

    partition: int
    ms: int
    isin: str
    time: int
    price: str
    size: str
    updates: str | None

    def counts_for(self, name: str) -> bool:
        """Tell whether it counts for ``last``, ``range`` or ``volume``."""
        return self.updates is None or name in self.updates.split(",")

    @property
    def volume(self) -> Fraction:
        """What it adds to the volume."""
        return Fraction(self.size) if self.counts_for("volume") else Fraction(0)

    @property
    def value(self) -> Fraction:
        """What it adds to the value."""
        return self.volume * Fraction(self.price)


NUMBERS = st.sampled_from(
    ["1", "100", "0.30", "199500", "0.000000000000000001", "999999999999999999.5"]
)
UPDATES = ["none", "last", "range", "volume", "range,volume", "volume,last,range"]
TRADES = st.lists(
    st.builds(
        Made,
        st.integers(0, 1),
        st.integers(0, 2 * W - 1),
        st.sampled_from(ISINS[:3]),
        st.integers(0, 9),
        NUMBERS,
        NUMBERS,
        st.sampled_from([None, *UPDATES]),
    ),
    max_size=12,
)


def batch_of(made: list[Made], is_live: bool) -> tuple[Batch, dict[Made, int]]:
    """Return the batch of such trades, and the position of each."""
    parts: list[list[tuple[int, bytes]]] = [[], []]
    positions = {}
    for one in made:
        extra = {} if one.updates is None else {"updates": one.updates}
        trade = Trade(one.isin, NOW_MS * 1000 + one.time, 1, one.price, one.size, extra)
        parts[one.partition].append((NOW_MS + one.ms, trade.to_wire()))
    zeros = (0, 0)
    end = Cut(NOW_MS + 2 * W, (1 << 62,) * 2, zeros)
    chunks = [make_chunk(part) for part in parts]
    for partition, chunk in enumerate(chunks):
        ones = (one for one in made if one.partition == partition)
        positions |= dict(zip(ones, chunk.positions.to_pylist(), strict=True))
    rows = rows_between(Cut(NOW_MS, zeros, zeros), end, chunks, MAX_AHEAD_MS)
    return assemble(as_conflated(rows, W, is_live), W), positions


@given(TRADES, st.booleans())
def test_what_does_not_count_is_not_the_latest_and_not_lost(
    made: list[Made], is_live: bool
) -> None:
    """Of every instrument and window: the shown trade, the sums, and the books."""
    made = sorted(set(made), key=lambda one: one.ms)
    batch, positions = batch_of(made, is_live)
    of_places: dict[tuple[int, str], list[Made]] = defaultdict(list)
    for one in made:
        of_places[NOW_MS + (one.ms // W + 1) * W, one.isin].append(one)
    rows = {(w.end_ms, r.isin): r for w in batch.windows for _, r in w.rows.values()}
    assert rows.keys() == of_places.keys()
    became: list[Counter[str]] = [Counter(), Counter()]
    shown: list[Made] = []
    for place, trades in of_places.items():
        row = rows[place]
        latest = max(
            (one for one in trades if one.counts_for("last")),
            key=lambda one: (one.time, positions[one], one.partition),
            default=None,
        )
        if latest is None:
            assert (row.version, row.body) == (NO_VERSION, b"")
        else:
            shown.append(latest)
            order = NOW_MS * 1000 + latest.time, 1, positions[latest]
            assert row.version == encode_version(*order)
            assert Trade.from_wire(row.body).price == latest.price
        check_sums(row.row_sums, trades)
        for one in trades:
            name = "shown" if one is latest else "superseded"
            became[one.partition][name if one.counts_for("last") else "not_last"] += 1
    for count, names in zip(batch.counts, became, strict=True):
        assert (count.superseded, count.not_last) == (
            names["superseded"],
            names["not_last"],
        )
    for partition, count in enumerate(batch.counts):
        own = [one for one in made if one.partition == partition]
        for name, some in {
            "read": own,
            "shown": [one for one in own if one in shown],
            "not_last": [one for one in own if not one.counts_for("last")],
            "superseded": [
                one for one in own if one.counts_for("last") and one not in shown
            ],
        }.items():
            volume, value = count.traded.get(name, (0, 0))
            assert Fraction(volume, PER_UNIT) == sum(one.volume for one in some)
            assert Fraction(value, PER_UNIT) == sum(one.value for one in some)


def check_sums(sums: RowSums, trades: list[Made]) -> None:
    """Compare what a row says of trades with what they come to."""
    assert sums.amounts is not None
    assert sums.trades == len(trades)
    volume, value, high, low = sums.amounts
    assert Fraction(volume, PER_UNIT) == sum(one.volume for one in trades)
    assert Fraction(value, PER_UNIT) == sum(one.value for one in trades)
    prices = [Fraction(one.price) for one in trades if one.counts_for("range")]
    extremes = [None if n is None else Fraction(n, PER_UNIT) for n in (high, low)]
    assert extremes == ([max(prices), min(prices)] if prices else [None, None])


def test_windows_together_say_what_each_says() -> None:
    """Also where each of them has one trade that counts for a part."""
    made = [
        Made(0, 1, ISINS[0], 1, "10", "3", "volume"),
        Made(0, W + 1, ISINS[0], 2, "20", "4", None),
        Made(0, 2, ISINS[1], 1, "10", "3", "last,range"),
        Made(0, 3, ISINS[2], 1, "10", "3", None),
    ]
    batch, _ = batch_of(sorted(made, key=lambda one: one.ms), is_live=False)
    assert batch.sums == {ISINS[0]: b"2,7,110,20,20", ISINS[1]: b"1,0,0,10,10"}
    first, second = ({i: r.sums for i, (_, r) in w.rows.items()} for w in batch.windows)
    assert first == {ISINS[0]: b"1,3,30,,", ISINS[1]: b"1,0,0,10,10", ISINS[2]: b"1"}
    assert second == {ISINS[0]: b"1"}
