"""What a feed appends can be kept as a tape and played again, the same."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from ingest.feed.run import FeedError, run_replay, run_simulator
from ingest.feed.tape_recorder import BadTapeFile, TapeFile
from ingest.settings import IngestSettings
from ingest.sources.event import Refusals
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import read_tape
from ingest.trade import JsonNumber, Trade

ISIN = "KR7005930003"
FORMS = [".jsonl", ".jsonl.gz", ".csv", ".csv.gz"]


def trade(seq: int, **extra: Any) -> Trade:
    """Return a trade with further fields."""
    return Trade(ISIN, 1_773_964_800_000_000, seq, "71900", "2.50", extra)


def record(path: Path, *trades: Trade) -> TapeFile:
    """Write trades to a tape."""
    tape = TapeFile(path)
    for each in trades:
        tape.add([(each.isin, each.to_wire())])
    tape.close()
    return tape


def read(path: Path) -> list[Trade]:
    """Return a tape's trades; none may be refused."""
    refusals = Refusals()
    trades = list(read_tape(path, refusals))
    assert refusals.total == 0
    return trades


@pytest.mark.parametrize("form", FORMS)
def test_a_tape_is_read_as_it_was_written(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"day{form}"
    told = [trade(n, venue="UPBIT", note='a "b", c') for n in range(3)]
    tape = record(path, *told)
    assert read(path) == told
    assert (tape.kept, tape.left_out) == (3, 0)
    assert path.read_bytes().startswith(b"\x1f\x8b") == form.endswith(".gz")


def test_json_lines_keep_what_csv_cannot(tmp_path: Path) -> None:
    """Numbers, nothing, a further field of a later trade."""
    told = [trade(1, n=JsonNumber("1.10"), none=None), trade(2, other=True)]
    record(tmp_path / "day.jsonl", *told)
    assert read(tmp_path / "day.jsonl") == told
    tape = record(tmp_path / "day.csv", *told)
    assert (tape.kept, tape.left_out) == (1, 1)
    assert read(tmp_path / "day.csv") == [trade(1, n="1.10", none="")]


def test_an_entry_that_is_no_trade_is_one_line_or_left_out(tmp_path: Path) -> None:
    broken = (ISIN, b'{"isin":\n')
    for form, left_out in ((".jsonl", 0), (".csv", 1)):
        tape = TapeFile(tmp_path / f"day{form}")
        tape.add([broken, (ISIN, trade(1).to_wire())])
        tape.close()
        assert tape.left_out == left_out
    lines = (tmp_path / "day.jsonl").read_bytes().splitlines()
    assert lines == [b'{"isin": ', trade(1).to_wire()]


def test_a_name_that_tells_no_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTapeFile, match=r"its name must end in one of .csv, .csv.gz"):
        TapeFile(tmp_path / "day.parquet")


@pytest.mark.redis
@pytest.mark.parametrize("form", FORMS)
def test_a_simulated_market_can_be_replayed(
    redis_url: str, client: redis.Redis, tmp_path: Path, form: str
) -> None:
    """All that was acknowledged is on the tape, and nothing else."""
    path = tmp_path / f"day{form}"
    settings = IngestSettings(redis_url=redis_url, namespace="test")
    simulator = Simulator(rate=2_000, seconds=0.3, repeats=0)
    report = run_simulator(settings, simulator, record_to=path)
    assert len(read(path)) == report.acknowledged > 300
    client.flushall()
    options = ReplayOptions(speed=1_000)
    again = tmp_path / f"again{form}"
    replayed = run_replay(settings, [path], options, record_to=again)
    assert replayed.acknowledged == report.acknowledged
    assert len(read(again)) == report.acknowledged


@pytest.mark.redis
def test_a_tape_that_cannot_be_made_is_told_at_the_start(
    redis_url: str, tmp_path: Path
) -> None:
    settings = IngestSettings(redis_url=redis_url, namespace="test")
    path = tmp_path / "missing" / "day.csv"
    with pytest.raises(FeedError, match=r"record .*day.csv: No such file"):
        run_simulator(settings, Simulator(), record_to=path)


def test_a_disk_that_is_full_is_told_once(tmp_path: Path) -> None:
    """The feed goes on; what is on the tape until then stays."""
    path = tmp_path / "day.jsonl"
    path.symlink_to("/dev/full")
    with capture_logs() as logs:
        tape = TapeFile(path)
        for _ in range(3):
            tape.add([(ISIN, trade(1).to_wire())] * 1_000)
        tape.close()
    assert [e["event"] for e in logs] == ["tape cannot be written, recording has ended"]


def test_a_packed_tape_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"
    record(path, trade(1), trade(2))
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 2
