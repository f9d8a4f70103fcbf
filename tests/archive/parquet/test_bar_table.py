"""Bars as a table: exact, and of those that are there twice the newest."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from archive.contract.logged import LoggedBars
from archive.parquet import segment_files
from archive.parquet.bar_table import BATCHES, build_bars, newest_bars
from archive.parquet.segment_files import BARS_FILE, BarFiles
from archive.parquet.tables import BadWindow
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.bars import Bar

MOST = Decimal("99999999999999999999.999999999999999999")
LEAST = Decimal("0.000000000000000001")


def entry(number: int, *bars: Bar) -> LoggedBars:
    lines = tuple(b"%b %b" % (bar.isin.encode(), bar.encode()) for bar in bars)
    ends = [bar.end_ms for bar in bars]
    place = "b7x1", number, number * 1_000
    return LoggedBars(*place, min(ends), max(ends), lines)


def closed(isin: str = SAMSUNG, minute: int = 0, trades: int = 4) -> Bar:
    return make_bar(isin, minute, trades=trades, closed=True)


def test_every_digit_is_kept_and_a_sum_that_did_not_fit_is_null() -> None:
    bar = replace(closed(), volume=None, value=MOST, low=LEAST, revision=3)
    [line] = build_bars([entry(7, bar)]).bars.to_pylist()
    assert (line["volume"], line["value"], line["low"]) == (None, MOST, LEAST)
    assert (line["isin"], line["width_ms"]) == (SAMSUNG, MINUTE_MS)
    assert line["start"].timestamp() * 1_000 == FIRST_MS
    assert (line["trades"], line["revision"]) == (4, 3)
    assert (line["epoch"], line["number"]) == ("b7x1", 7)


def test_a_bar_of_a_series_has_its_key() -> None:
    key = f"{SAMSUNG}@KRX-regular"
    [line] = build_bars([entry(7, closed(key))]).bars.to_pylist()
    assert (line["isin"], line["trades"]) == (key, 4)


def test_the_newest_of_each_is_kept_whatever_order_they_come_in() -> None:
    short = replace(closed(), end_ms=FIRST_MS + 1_000)
    tables = build_bars(
        [
            entry(1, closed(trades=6), closed(HYNIX)),
            entry(2, closed(trades=5), short, closed(minute=1)),
        ]
    )
    assert tables.batches.schema == BATCHES
    assert tables.batches["bars"].to_pylist() == [2, 3]
    newest = newest_bars(tables.bars)
    assert newest.select(["isin", "width_ms", "trades"]).to_pylist() == [
        {"isin": HYNIX, "width_ms": MINUTE_MS, "trades": 4},
        {"isin": SAMSUNG, "width_ms": 1_000, "trades": 4},
        {"isin": SAMSUNG, "width_ms": MINUTE_MS, "trades": 6},
        {"isin": SAMSUNG, "width_ms": MINUTE_MS, "trades": 4},
    ]
    assert newest_bars(tables.bars[:1]).num_rows == 1
    assert newest_bars(tables.bars[:0]).num_rows == 0


def test_a_line_that_is_no_closed_bar_is_named() -> None:
    with pytest.raises(BadWindow, match=r"entry 2 of the bar log: .* 4 0 0'"):
        build_bars([entry(1, closed()), entry(2, closed(), make_bar())])


def test_an_amended_bar_is_there_once_however_files_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its two forms may be far apart in their files."""
    monkeypatch.setattr(segment_files, "BARS_A_GROUP", 1)
    monkeypatch.setattr(segment_files, "ROWS_A_PIECE", 1, raising=False)
    entries = [
        entry(1, *(closed(minute=minute) for minute in range(3))),
        entry(2, closed(minute=2, trades=5)),
    ]
    sources = [tmp_path / "1", tmp_path / "2"]
    for source, logged in zip(sources, entries, strict=True):
        source.mkdir()
        BarFiles().write(source, build_bars([logged]))
    BarFiles().merge(sources, tmp_path, lambda: None, is_final=True)
    bars = pq.read_table(tmp_path / BARS_FILE)
    assert bars["trades"].to_pylist() == [4, 4, 5]
