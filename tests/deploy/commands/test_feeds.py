"""The commands that feed the log."""

import os
import subprocess
import sys

import pytest
import redis
from typer.testing import CliRunner

from deploy.cli import app
from ingest.tradelog.redis_positions import stream_key

TAPE = (
    b"isin,time,seq,price,size\n"
    b"KR7005930003,2026-03-20T09:00:00+09:00,1,199500,3\n"
    b"KR7005930003,2026-03-20T09:00:00.25+09:00,2,199400,1\n"
)


@pytest.mark.redis
def test_a_tape_may_come_on_standard_input(redis_url: str, client: redis.Redis) -> None:
    """From another program, through a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "tickthrottle", "replay", "-"],
        input=TAPE,
        env={**os.environ, "REDIS_URL": redis_url, "TICKTHROTTLE_PARTITIONS": "1"},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert client.xlen(stream_key("tt", 0)) == 2


@pytest.mark.parametrize("arguments", [["-", "-"], ["-", "--loop", "2"]])
def test_standard_input_is_played_once(arguments: list[str]) -> None:
    """It cannot be rewound."""
    result = CliRunner().invoke(app, ["replay", *arguments])
    assert result.exit_code == 2
    assert result.stderr == "tickthrottle: tape -: standard input can be played once\n"
