"""Windows and bars share one bound; the newest of each stays."""

from pathlib import Path

import pytest

from archive.contract.logged import LoggedBars, LoggedWindow, segment_of
from archive.parquet.bar_table import build_bars
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.segment_folder import all_segments, bars_root
from archive.parquet.tables import build_tables
from tests.gateway.bar_publisher import make_bar
from tests.gateway.samples import FIRST_WINDOW, LISTED, make_isins, make_row
from tests.gateway.samples import make_snapshot as snapshot

DAY_MS = 86_400_000
MINUTES_A_DAY = 1_440
ISINS = make_isins(200)


def store_window(sink: ParquetSink, day: int, offset: int) -> None:
    message = snapshot(offset, *map(make_row, ISINS)).encode()
    end_ms = FIRST_WINDOW + offset * 2_000
    text = message.replace(b"%d" % end_ms, b"%d" % (end_ms + day * DAY_MS), 1)
    run = [LoggedWindow.decode(text)]
    sink.store(segment_of(run), build_tables(run, [1], lambda _: LISTED, 2_000))


def store_bars(sink: ParquetSink, day: int, number: int) -> None:
    minute = day * MINUTES_A_DAY + number
    bars = [make_bar(isin, minute, closed=True) for isin in ISINS]
    lines = tuple(b"%b %b" % (bar.isin.encode(), bar.encode()) for bar in bars)
    ends = bars[0].end_ms, bars[0].end_ms
    entry = LoggedBars("b7x1", number, number * 1_000, *ends, lines)
    sink.store(segment_of([entry]), build_bars([entry]))


def stored(root: Path) -> tuple[list[int], list[int]]:
    """Return the first numbers of the segments of windows, and of bars."""
    windows, bars = all_segments(root), all_segments(bars_root(root))
    return [s.first for s, _ in windows], [s.first for s, _ in bars]


def tidy(sink: ParquetSink, day: int) -> list[str]:
    """Tidy as long as there is something to do; return what was done."""
    newest_ms = FIRST_WINDOW + day * DAY_MS + 60_000
    return list(iter(lambda: sink.tidy(newest_ms), None))


def fill(sink: ParquetSink) -> None:
    """Store two days of each, the bars from one day earlier on."""
    sink.open()
    assert sink.stored() == {"windows": [], "bars": [], "statuses": []}
    for number in range(1, 5):
        store_window(sink, 1 + number // 3, number)
        store_bars(sink, number // 3, number)


def test_the_oldest_day_goes_first_whosever_it_is(tmp_path: Path) -> None:
    """Until it is little enough; at last the newest segment of each is left."""
    sink = ParquetSink(tmp_path, 2**40, 0)
    fill(sink)
    assert [line.partition(" of ")[0] for line in tidy(sink, 2)] == [
        "merged 2 segments",
        "merged 2 segments",
    ]
    assert stored(tmp_path) == ([1, 3, 4], [1, 3, 4])
    sink.close()
    small = ParquetSink(tmp_path, sink.size_bytes() - 1, 0)
    small.open()
    assert tidy(small, 2) == ["removed the day 2026-03-20 of bars"]
    assert stored(tmp_path) == ([1, 3, 4], [3, 4])
    small.close()
    least = ParquetSink(tmp_path, 1, 0)
    least.open()
    done = tidy(least, 2)
    assert done[0] == "removed the day 2026-03-21"
    assert stored(tmp_path) == ([4], [4])
    least.close()


def test_days_are_counted_back_from_the_newest_of_each(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, 2**40, 1)
    fill(sink)
    assert {line for line in tidy(sink, 2) if line.startswith("removed")} == {
        "removed the day 2026-03-21",
        "removed the day 2026-03-20 of bars",
    }
    assert stored(tmp_path) == ([3, 4], [3, 4])
    sink.close()


def test_a_folder_of_bars_that_cannot_be_made_is_made_later(tmp_path: Path) -> None:
    """What stands in its place is named; windows are stored meanwhile."""
    sink = ParquetSink(tmp_path, 2**40, 0)
    sink.open()
    bars_root(tmp_path).write_text("in the way")
    with pytest.raises(OSError, match="bars"):
        store_bars(sink, 0, 1)
    store_window(sink, 0, 1)
    bars_root(tmp_path).unlink()
    store_bars(sink, 0, 1)
    assert stored(tmp_path) == ([1], [1])
    sink.close()
