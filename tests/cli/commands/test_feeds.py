"""The commands that feed the log."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from cli.command_line import app
from tickthrottle_client.log_v1 import stream_key

TAPE = (
    b"isin,time,seq,price,size\n"
    b"KR7005930003,2026-03-20T09:00:00+09:00,1,199500,3\n"
    b"KR7005930003,2026-03-20T09:00:00.25+09:00,2,199400,1\n"
)


def feed(url: str, *command: str, tape: bytes = b"") -> str:
    """Run a feed as a process to its end; return what it says of itself."""
    done = subprocess.run(
        [sys.executable, "-m", "tickthrottle", *command],
        input=tape,
        env={**os.environ, "REDIS_URL": url, "TICKTHROTTLE_PARTITIONS": "1"},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.decode()


@pytest.mark.redis
def test_a_tape_may_come_on_standard_input(redis_url: str, client: redis.Redis) -> None:
    feed(redis_url, "replay", "-", tape=TAPE)
    assert client.xlen(stream_key("tt", 0)) == 2


def test_standard_input_is_played_once() -> None:
    for arguments in (["-", "-"], ["-", "--loop", "2"]):
        result = CliRunner().invoke(app, ["replay", *arguments])
        assert result.exit_code == 2
        sentence = "tape -: standard input can be played once"
        assert result.stderr == f"tickthrottle: {sentence}\n"


@pytest.mark.redis
def test_a_tape_has_the_options_of_a_pipe(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """Names, units, symbols, delimiters: the same file, the same trades."""
    (tmp_path / "list.csv").write_text("isin,code\nUS0378331005,AAPL\n")
    path = tmp_path / "us.tsv.gz"
    path.write_bytes(
        gzip.compress(b"ticker\tts\tpx\tqty\nAAPL\t1764028801123\t1.5\t2\n")
    )
    names = ["--map", "isin=ticker,time=ts,price=px,size=qty", "--form", "time-unit=ms"]
    names += ["--form", "delimiter=tab", "--instruments", f"{tmp_path}/list.csv"]
    for command in ("ingest", "replay"):
        feed(redis_url, command, str(path), *names)
    assert client.xlen(stream_key("tt", 0)) == 2


def test_run_says_what_a_tape_lacks_before_it_starts_anything(tmp_path: Path) -> None:
    path = tmp_path / "us.tsv"
    path.write_bytes(b"isin\ttime\tprice\tsize\n")
    result = CliRunner().invoke(app, ["run", "--tape", str(path)])
    assert result.exit_code == 3
    assert "separated by tabs: --form delimiter=tab" in result.stderr
    alone = CliRunner().invoke(app, ["run", "--map", "isin=s"])
    assert alone.exit_code == 2
    assert alone.stderr == "tickthrottle: --map: is for a tape, and there is none\n"


@pytest.mark.redis
def test_a_tape_has_the_keys_and_conditions_of_a_pipe(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """And what is left out is told at the end."""
    path = tmp_path / "coins.csv"
    path.write_text("symbol,day,t,px,qty,fix\nBTC,20261125,9:30:00,-71900,2,0\n")
    names = ["--map", "date=day,time=t,price=px,size=qty"]
    forms = ["set=side=B", "unsigned=price", "scale=price=0.01", "leave-out=fix"]
    forms += ["time-zone=America/New_York"]
    values = [word for text in forms for word in ("--form", text)]
    options = [*names, *values, "--venue", "XMKT"]
    said = feed(redis_url, "replay", str(path), *options)
    assert re.search("left_out.*fix.*0", said)
    [(_, entry)] = client.xrange(stream_key("tt", 0))
    [trade] = [v for v in entry.values() if b"QX1BTC" in v]
    assert b'"719"' in trade
    assert b'"side":"B"' in trade


@pytest.mark.parametrize("venue", [[], ["--venue", "XMKT"]])
def test_run_has_the_list_of_a_tape_with_keys(venue: list[str], tmp_path: Path) -> None:
    """The venue is that of the list, too; what is wrong is told before all starts."""
    listed = tmp_path / "list.csv"
    listed.write_text("symbol,name\nBTC,Bitcoin\n")
    path = tmp_path / "coins.csv"
    path.write_text("symbol,time,price,size\nBTC,yesterday,1,1\n")
    options = ["--tape", str(path), "--instruments", str(listed), *venue]
    result = CliRunner().invoke(app, ["run", *options])
    assert result.exit_code == 3
    rule = "holds no valid trade; line 2: bad_time" if venue else "column isin"
    assert rule in result.stderr


def test_inspect_prints_the_command_that_takes_a_file(tmp_path: Path) -> None:
    """As it can be copied; 1 is for a file of which nothing can be taken as it is."""
    path = tmp_path / "a day.tsv.gz"
    row = b"KR7005930003\t1764028801123\t71900\t10\n"
    path.write_bytes(gzip.compress(b"symbol\tts\tpx\tqty\n" + row))
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0
    assert "KR7005930003 2025-11-25T00:00:01.123Z 71900 x 10" in result.stdout
    assert result.stdout.endswith(
        f"command   tickthrottle ingest '{path}' --map isin=symbol,time=ts,price=px,"
        "size=qty --form delimiter=tab --form time-unit=ms\n"
    )
    path.write_bytes(b"\xfd7zXZ\x00")
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert (result.exit_code, "is xz: unpack" in result.stdout) == (1, True)
    missing = CliRunner().invoke(app, ["inspect", str(tmp_path / "none")])
    assert (missing.exit_code, missing.stdout) == (3, "")
