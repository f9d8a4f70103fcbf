"""Every row that a throttle can write is stored with exact numbers."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from archive.contract.logged import LoggedWindow
from archive.contract.packed_window import pack_window, unpack_window
from archive.parquet.tables import AMOUNTS, DECIMAL, build_tables, exact_digits
from ingest.instrument_table.known_instruments import Instruments
from ingest.trade import Trade
from tests.archive.late_market import row_of, sums_of
from tests.gateway.samples import (
    FIRST_WINDOW,
    LISTED,
    SAMSUNG,
    make_row,
    make_snapshot,
)
from throttle.contract.snapshot import body_of

decimals = st.one_of(
    st.from_regex(r"\A[0-9]{1,18}(\.[0-9]{1,18})?\Z"),
    st.integers(1, 10**7).map(str),
)
updates = st.sampled_from(["last", "last,range", "last,volume", "last,range,volume"])
trades = st.lists(st.tuples(decimals, decimals, updates), min_size=1, max_size=6)


@given(trades, st.booleans())
def test_sums_are_exact(made: list[tuple[str, str, str]], restates: bool) -> None:
    """Of one trade and of many; where no decimal holds a sum, its text does.

    High and low are null if no trade counts for the range.
    """
    of_row = [
        Trade(
            SAMSUNG, FIRST_WINDOW * 1_000 + seq, seq, price, size, {"updates": counts}
        )
        for seq, (price, size, counts) in enumerate(made, 1)
    ]
    row = row_of(of_row)
    if restates:
        row = row._replace(sums=sums_of(of_row).encode())
    message = make_snapshot(1, row).encode()
    assert unpack_window(pack_window(message)) == message
    run = [LoggedWindow.decode(message)]
    [line] = build_tables(run, [1], lambda _: LISTED, 2_000).rows.to_pylist()
    paid = [(Fraction(p), Fraction(s)) for p, s, counts in made if "volume" in counts]
    prices = [Fraction(price) for price, _, counts in made if "range" in counts]
    expected = (
        sum(size for _, size in paid),
        sum(price * size for price, size in paid),
        max(prices, default=None),
        min(prices, default=None),
    )
    for name, amount in zip(AMOUNTS, expected, strict=True):
        stored, text = line[name], line.get(f"{name}_text")
        if amount is None:
            assert (stored, text) == (None, None)
            continue
        assert Fraction(text if stored is None else stored) == amount
        assert (stored is None) == (text is not None)
        assert (stored is None) == (amount >= 10**20 or amount * 10**18 % 1 != 0)
    assert (line["trades"], line["price_text"]) == (len(made), made[-1][0])


def test_the_trades_of_a_window_are_counted_once() -> None:
    row = make_row(trades=3)
    key = f"{SAMSUNG}@NXT"
    series = row._replace(isin=key, body=body_of(key, row.body))
    run = [LoggedWindow.decode(make_snapshot(1, row, series).encode())]
    stored = build_tables(run, [1], lambda _: LISTED, 2_000)
    assert [line["trades"] for line in stored.rows.to_pylist()] == [3, 3]
    [line] = stored.windows.to_pylist()
    assert (line["rows"], line["trades"]) == (2, 3)


def test_what_a_window_counts_is_its_own_whatever_table_it_was_joined_with() -> None:
    """Of two jobs one may join with an older table than the window before was."""
    tables = {1: Instruments(), 2: LISTED}
    unknown = make_row("KR7999999999", trades=4)
    windows = (
        make_snapshot(1, make_row(trades=7)),
        make_snapshot(2, unknown, make_row()),
    )
    run = [LoggedWindow.decode(window.encode()) for window in windows]
    for versions, unlisted in (([2, 1], [0, 2]), ([1, 2], [1, 1])):
        stored = build_tables(run, versions, lambda v: tables[v], 2_000).windows
        assert stored["trades"].to_pylist() == [7, 5]
        assert stored["unknown_instruments"].to_pylist() == unlisted


def test_decimals_are_text_with_the_digits_that_they_have() -> None:
    """Without an exponent or zeros at the end, however small or large they are."""
    digits = ["0", "100", "199400.5", "0.00000012", "0.000001", "0.000000000000000001"]
    digits += ["12345678901234567890", "-5.1", None]
    numbers = [text if text is None else Decimal(text) for text in digits]
    table = pa.table({"volume": pa.array(numbers, DECIMAL)})
    assert exact_digits(table, "volume").to_pylist() == digits
    said = table.append_column("volume_text", pa.array(["0.50", *[None] * 8]))
    assert exact_digits(said, "volume").to_pylist() == ["0.50", *digits[1:]]
