"""Windows and bars of a file, as Parquet, by one command."""

import gzip
import re
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from archive.parquet.bar_table import BARS
from archive.parquet.tables import ROWS
from tests.cli.running import run
from tests.doc_pages import blocks

LINES = """symbol,at,px,qty
AAPL,2026-03-20T09:00:02.5Z,71.25,3
AAPL,2026-03-20T09:00:00.000001Z,70,10
AAPL,2026-03-20T09:00:01.9Z,69,1
MSFT,2026-03-20T09:01:00Z,0.10,2
MSFT,2026-03-20T09:01:01Z,-4,2
"""
FORM = ["--map", "isin=symbol,time=at,price=px,size=qty", "--venue", "XNAS"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file as people have them, not in the order of time."""
    path = tmp_path / "day.csv"
    path.write_text(LINES)
    return path


def test_a_file_becomes_rows_and_bars(file: Path, tmp_path: Path) -> None:
    """By its own times, with the columns of the archive; what is wrong is told."""
    out = tmp_path / "day.parquet"
    done = run("backtest", file, "--out", out, *FORM)
    assert done.exit_code == 0, done.output
    assert "refused: 1 bad_price" in done.stderr
    assert "4 trades from 2026-03-20T09:00:00.000Z to 2026-03-20T09:01" in done.stdout
    assert f"3 rows of 3 windows of 2,000 ms in {out}" in done.stdout
    rows = pq.read_table(out)
    assert rows.schema.equals(ROWS)
    first = rows.to_pylist()[0]
    assert first["window"].isoformat() == "2026-03-20T09:00:02+00:00"
    assert (first["price_text"], first["trades"]) == ("69", 2)
    assert (first["volume"], first["high"], first["low"]) == (11, 70, 69)
    bars = pq.read_table(tmp_path / "day-bars.parquet")
    assert bars.schema.equals(BARS)
    opened = [(bar["open"], bar["close"], bar["trades"]) for bar in bars.to_pylist()]
    assert opened == [(70, Decimal("71.25"), 3), (Decimal("0.1"), Decimal("0.1"), 1)]


def test_lengths_may_be_chosen(file: Path, tmp_path: Path) -> None:
    """One window of a minute; one bar of five."""
    out = tmp_path / "day.parquet"
    lengths = ("--window-ms", "60000", "--bars-ms", "300000")
    assert run("backtest", file, "--out", out, *FORM, *lengths).exit_code == 0
    assert [row["trades"] for row in pq.read_table(out).to_pylist()] == [3, 1]
    bars = pq.read_table(tmp_path / "day-bars.parquet").to_pylist()
    assert {bar["width_ms"] for bar in bars} == {300_000}


def test_the_commands_of_the_page_make_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody types them; the numbers are those of another file."""
    monkeypatch.chdir(tmp_path)
    text = LINES.replace("symbol,at,px,qty", "ticker,time,price,size")
    Path("day.csv").write_text(text)
    of_isin = text.replace("ticker", "isin").replace("AAPL", "US0378331005")
    Path("day.csv.gz").write_bytes(gzip.compress(of_isin.encode()))
    first, second, *shown = "".join(blocks("docs/feeding.md", "")[1:]).splitlines()
    for command in (first, second):
        done = run("backtest", *command.split()[2:])
        assert done.exit_code == 0, done.output
        told = [re.sub(r"[\d,:.TZ-]+", "0", line) for line in done.stdout.splitlines()]
        assert told == [re.sub(r"[\d,:.TZ-]+", "0", line) for line in shown]
        assert pq.read_table("day.parquet").num_rows == int(done.stdout.split()[6])


@pytest.mark.parametrize(
    ("out", "code", "problem"),
    [
        ("day.csv", 2, "must end in .parquet"),
        ("no/folder/day.parquet", 3, "cannot be written"),
    ],
)
def test_where_it_cannot_be_written_is_told(
    file: Path, tmp_path: Path, out: str, code: int, problem: str
) -> None:
    done = run("backtest", file, "--out", tmp_path / out, *FORM)
    assert done.exit_code == code
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run("backtest", tmp_path / "none.csv", "--out", tmp_path / "day.parquet")
    assert done.exit_code == 3
    assert "none.csv" in done.stderr
    assert list(tmp_path.iterdir()) == []
