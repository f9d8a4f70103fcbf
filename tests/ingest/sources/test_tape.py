"""Reading a tape: four formats, bad lines, tapes that are none."""

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.sources.event import SHOWN_REFUSALS, Refusals
from ingest.sources.simulator import Simulator
from ingest.sources.tape import TapeError, read_tape
from ingest.trade import MAX_PAYLOAD_BYTES, Trade
from tests.conftest import TAPES, skip_or_fail

TRADES = [
    Trade.from_wire(event.payload)
    for event in Simulator(seconds=2, rate=100).events(1_773_964_800_000_000)
]
HEADER = b"isin,time,seq,price,size\n"
GOOD = b"KR7005930003,1773964804123456,1,199500,3\n"


def as_rows(trades: Sequence[Trade]) -> list[dict[str, str]]:
    """The trades as a tape's rows."""
    return [
        {name: str(value) for name, value in orjson.loads(trade.to_wire()).items()}
        for trade in trades
    ]


def as_csv(trades: Sequence[Trade], columns: Sequence[str] | None = None) -> bytes:
    """The trades as CSV, in a given order of columns."""
    rows = as_rows(trades)
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_json_lines(trades: Sequence[Trade]) -> bytes:
    """The trades as JSON lines."""
    return b"\n".join(trade.to_wire() for trade in trades)


def read(path: Path, content: bytes) -> tuple[list[Trade], Refusals]:
    """Read a tape of the given content."""
    path.write_bytes(content)
    refusals = Refusals()
    return list(read_tape(path, refusals)), refusals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a tape is put; its name says nothing of its format."""
    return tmp_path / "tape.dat"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_csv_is_read_in_order(path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Every row is a trade, its further columns are text, packed or not."""
    trades, refusals = read(path, pack(as_csv(TRADES)))
    assert [t.version for t in trades] == [t.version for t in TRADES]
    assert as_rows(trades) == as_rows(TRADES)
    assert refusals == Refusals()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_json_lines_are_read_in_order(
    path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """Every line is a trade with its fields as they are, packed or not."""
    assert read(path, pack(as_json_lines(TRADES))) == (TRADES, Refusals())


def test_tape_of_another_system_is_read(path: Path) -> None:
    """Byte order mark, CR LF, blank lines, quotes and a missing last newline pass."""
    content = (
        b"\xef\xbb\xbfisin, time ,seq,price,size,venue\r\n\r\n"
        b'KR7005930003,1773964804123456,1,0.30,3,"K,R""X"\r\n   \r\n'
        b'"KR7005930003",1773964804123457,2,199500,3, \xed\x95\x9c '
    )
    trades, refusals = read(path, content)
    assert refusals == Refusals()
    assert [trade.extra["venue"] for trade in trades] == ['K,R"X', " \ud55c "]
    assert trades[0].price == "0.30"


def test_bad_rows_are_counted_and_the_rest_goes_on(path: Path) -> None:
    """A bad row is refused by reason and line; the trades around it are read."""
    rows = [
        GOOD,
        b"KR7005930004,1773964804123456,2,199500,3\n",
        b"KR7005930003,1773964804123456,2,-5,3\n",
        b"KR7005930003,1773964804123456,2,199500\n",
        b"KR7005930003,1773964804123456,2,199500,3,surplus\n",
        b"KR7005930003,,2,199500,3\n",
        b"KR7005930003,1773964804123456,2,199500,\xff\n",
        b'KR7005930003,1773964804123456,2,199500,"3\n',
        b'KR7005930003,1773964804123456,2,199500,"3\rx"y"\n',
        b"x" * 200_000 + b"\n",
        GOOD,
    ]
    trades, refusals = read(path, HEADER + b"".join(rows))
    assert len(trades) == 2
    assert refusals.counts == {
        "bad_isin": 1,
        "bad_price": 1,
        "bad_field": 5,
        "missing_field": 1,
        "too_large": 1,
    }
    assert refusals.total == 9
    assert len(refusals.examples) == SHOWN_REFUSALS
    assert refusals.examples[0].startswith("line 3: bad_isin: isin 'KR7005930004'")
    assert refusals.examples[2].endswith("has 4 values, the header 5")


def test_bad_json_lines_are_counted_and_the_rest_goes_on(path: Path) -> None:
    """A line that is no trade is refused by reason; blank lines do not count."""
    lines = [TRADES[0].to_wire(), b"{", b"", b"[1]", b"{}", TRADES[1].to_wire()]
    trades, refusals = read(path, b"\n".join(lines))
    assert trades == TRADES[:2]
    assert refusals.counts == {"not_json": 1, "not_object": 1, "missing_field": 1}
    assert refusals.examples[1].startswith("line 4: not_object")


def test_row_whose_encoding_is_too_large_is_refused(path: Path) -> None:
    """A row that would exceed the largest payload only when encoded is refused."""
    note = b"\x01" * (MAX_PAYLOAD_BYTES // 4)
    header = HEADER.strip() + b",note\n"
    row = GOOD.strip() + b","
    trades, refusals = read(path, header + row + note + b"\n" + row + note[:99] + b"\n")
    assert len(trades) == 1
    assert refusals.counts == {"too_large": 1}
    assert all(len(trade.to_wire()) <= MAX_PAYLOAD_BYTES for trade in trades)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "holds no valid trade"),
        (b"\n\n", "holds no valid trade"),
        (HEADER, "holds no valid trade"),
        (HEADER + b"a,b\n", "holds no valid trade; line 2: bad_field"),
        (b"{}\n", "holds no valid trade; line 1: missing_field"),
        (gzip.compress(b""), "holds no valid trade"),
        (b"isin,time,seq,size\n", "has no column 'price'"),
        (b"isin;time;seq;price;size\n", "by semicolons: --form delimiter=';'"),
        (b"isin,time,seq,price,size,isin\n", "a name of its own"),
        (b"[\n{}]", "is JSON over several lines"),
        (b"PAR1\xff\xfe\x00", "Parquet damaged after line 0: "),
        (b"x" * 100_000, "its first line: trade b'xxx"),
        (gzip.compress(HEADER + GOOD * 9)[:-9], "gzip damaged after line"),
        (b"\x1f\x8b\x00nonsense", "gzip damaged after line 0"),
        (gzip.compress(HEADER + GOOD)[:-5] + b"12345", "gzip damaged after line 2"),
        (gzip.compress(HEADER)[:12] + b"\xff" * 40, "gzip damaged after line 0"),
    ],
    ids=range(16),
)
def test_tape_that_is_none_is_one_clear_error(
    path: Path, content: bytes, rule: str
) -> None:
    """The error names the file and the rule it breaks."""
    with pytest.raises(TapeError) as caught:
        read(path, content)
    assert str(caught.value).startswith(f"tape {path}: ")
    assert rule in str(caught.value)
    assert caught.value.path == path


def test_missing_tape_and_folder_are_clear_errors(tmp_path: Path) -> None:
    """A path without a readable file is told as such."""
    with pytest.raises(TapeError, match="cannot be read: No such file"):
        list(read_tape(tmp_path / "none.csv", Refusals()))
    with pytest.raises(TapeError, match="cannot be read: Is a directory"):
        list(read_tape(tmp_path, Refusals()))


def test_tape_is_streamed(path: Path) -> None:
    """The first trades come before a damaged end is reached."""
    rows = b"".join(GOOD.replace(b",1,", b",%d," % n) for n in range(20_000))
    path.write_bytes(gzip.compress(HEADER + rows)[:-8])
    trades = read_tape(path, Refusals())
    assert [next(trades).seq for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TapeError, match="gzip damaged after line 20001"):
        list(trades)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.booleans())
def test_any_content_is_trades_refusals_or_a_tape_error(
    path: Path, content: bytes, headed: bool
) -> None:
    """Whatever a file holds, reading it raises TapeError or nothing."""
    try:
        trades, _ = read(path, HEADER + content if headed else content)
    except TapeError:
        trades = []
    assert trades == [Trade.from_wire(trade.to_wire()) for trade in trades]


def test_recorded_tape_is_read_whole() -> None:
    """Every row of a real tape is a trade."""
    path = TAPES / "b3_options_20151126.csv.gz"
    if not path.exists():
        skip_or_fail(f"the recorded tape {path}")
    refusals = Refusals()
    isins = [trade.isin for trade in read_tape(path, refusals)]
    assert (len(isins), len(set(isins)), refusals.total) == (18_301, 770, 0)


@pytest.mark.parametrize(
    ("time", "rule"),
    [
        ("2026-03-20T00:00:04", "needs its offset from UTC, such as +09:00, or Z"),
        ("2026-02-30T00:00:04Z", "day is out of range for month"),
        ("1926-03-20T00:00:04Z", "must be a whole number from 0"),
        ("yesterday", "must be a number, see time-unit of --form, or as in ISO 8601"),
    ],
)
def test_a_time_without_an_offset_is_refused(path: Path, time: str, rule: str) -> None:
    """The rule is named; nobody guesses a zone."""
    lines = (
        f"KR7005930003,{time},1,1,3\n".encode(),
        f'{{"isin":"KR7005930003","time":"{time}","seq":1,"price":1,"size":3}}'.encode(),
    )
    for tape in (HEADER + lines[0] + GOOD, lines[1] + b"\n" + as_json_lines(TRADES)):
        _, refusals = read(path, tape)
        assert refusals.counts == {"bad_time": 1}
        assert rule in refusals.examples[0]
