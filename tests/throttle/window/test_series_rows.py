"""Trades counted for their series: by columns as one by one."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trade import MAX_PAYLOAD_BYTES, Trade
from ingest.tradelog.contract import Chunk
from tests.examples import many
from throttle.window.checked_rows import extra_trades, trade_rows
from throttle.window.series_rows import NO_SERIES, SeriesRules, find_series

ISINS = ("KR7005930003", "KR7000660001", "US0378331005")
RULES = find_series("KRX,NXT,regular,KRX-regular", "KR=XKRX")
# 2026-11-27, half an hour before the regular session.
FIRST_US = 1_795_735_800_000_000
HALF_HOUR_US = 1_800_000_000

further = st.fixed_dictionaries(
    {},
    optional={
        "venue": st.sampled_from(["KRX", "NXT", "KRXX", "krx", 'K"', 1]),
        "session": st.sampled_from(["regular", "after", "", 7]),
        "note": st.sampled_from(["é", '","venue":"NXT', "x"]),
        "updates": st.sampled_from(["volume", "last,range", "none"]),
    },
)
trades = st.builds(
    Trade,
    st.sampled_from(ISINS),
    st.integers(0, 17).map(lambda n: FIRST_US + n * HALF_HOUR_US),
    st.integers(0, 5),
    st.sampled_from(["71900", "0.00000000001", "1"]),
    st.sampled_from(["1", "0.5"]),
    further,
)


def chunk_of(payloads: list[bytes], append_ms: int) -> Chunk:
    """Return entries of a log, appended at one moment."""
    size = len(payloads)
    return Chunk(
        pa.array(range(1, size + 1), pa.int64()),
        pa.array([append_ms] * size, pa.int64()),
        pa.array(payloads, pa.binary()),
        size,
    )


def rows_of(payloads: list[bytes], rules: SeriesRules, decoder: Any = None) -> Any:
    """Return key, position and payload of each row, in order."""
    end_ms = FIRST_US // 1_000 + 86_400_000
    chunk = chunk_of(payloads, end_ms - 1)
    table = trade_rows(
        *(chunk, 0, 0, end_ms, 5_000, decoder), every_trade=True, series=rules
    )
    assert extra_trades(table, {0: len(payloads)})[0] == sum(
        not key.startswith("!sum") for key in table["key"].to_pylist()
    ) - len(payloads)
    columns = (table[name].to_pylist() for name in ("key", "position", "payload"))
    return sorted(zip(*columns, strict=True))


@settings(max_examples=many(200))
@given(tape=st.lists(trades, min_size=1, max_size=12))
def test_by_columns_as_one_by_one(tape: list[Trade]) -> None:
    """Whichever way an entry is read, it counts for the same keys, with one payload."""

    def decode(payload: bytes) -> Any:
        trade = Trade.from_wire(payload)
        return trade.extra | {
            "isin": trade.isin,
            "time": trade.time_us,
            "seq": trade.seq,
            "price": trade.price,
            "size": trade.size,
        }

    payloads = [trade.to_wire() for trade in tape]
    found = rows_of(payloads, RULES)
    of_trades = [row for row in found if "!sum" not in row[0]]
    due = []
    for position, trade in enumerate(tape, 1):
        labelled = RULES.labelled(trade)
        prefix = "" if trade.updates.last else "!not_last:"
        due += [
            (prefix + key, position, labelled.to_wire())
            for key in RULES.keys_of(labelled)
        ]
    assert of_trades == sorted(due)
    in_other_order = rows_of(payloads, RULES, decode)
    keys = [[row[:2] for row in rows] for rows in (found, in_other_order)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("more", [0, 1])
def test_a_trade_that_would_become_too_large_stays_as_it_is(more: int) -> None:
    """By columns and one by one alike."""
    trade = Trade(ISINS[0], FIRST_US, 1, "1", "1", {"note": ""})
    told = len(RULES.labelled(trade).to_wire())
    size = MAX_PAYLOAD_BYTES - told + more
    trade = replace(trade, extra={"note": "x" * size})
    is_told = b'"session"' in RULES.labelled(trade).to_wire()
    ((_, _, payload), *_) = rows_of([trade.to_wire()], RULES)
    assert (b'"session"' in payload, is_told) == (more == 0, more == 0)


def test_without_a_setting_nothing_is_done() -> None:
    """One object stands for all who keep no series."""
    assert find_series("", "") is NO_SERIES
    assert not NO_SERIES.is_any
    trade = Trade(ISINS[0], FIRST_US, 1, "1", "1", {"venue": "KRX"})
    assert NO_SERIES.labelled(trade) is trade
    assert list(NO_SERIES.keys_of(trade)) == [ISINS[0]]
