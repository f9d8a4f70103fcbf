"""Raw frames are kept, within a bound, without keys; played again they are the same."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.raw_tape import (
    Opened,
    RawRecorder,
    RawTapeError,
    Received,
    read_raw,
)
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.upbit import Upbit
from tests.conftest import eventually
from tests.ingest.adapters.exchange import Session, exchanging
from tests.ingest.adapters.feeding import feeding, logged, wait_for
from tests.ingest.adapters.frames import alpaca, deals, upbit

BAD_BYTES = b"\xff\x00"


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl.gz"
    recorder = RawRecorder(path, "upbit", 10**6)
    recorder.opened(0, 5, ["KRW-BTC"])
    recorder.received(0, 6, "텍스트")
    recorder.received(0, 7, b"text")
    recorder.received(0, 8, BAD_BYTES)
    recorder.close()
    recorder.received(0, 9, "after the end")
    assert list(read_raw(path)) == [
        Opened(0, ("KRW-BTC",), "upbit"),
        Received(0, 6, "텍스트"),
        Received(0, 7, "text"),
        Received(0, 8, BAD_BYTES),
    ]


def test_a_raw_tape_ends_at_its_bound(tmp_path: Path) -> None:
    """And says so, once."""
    path = tmp_path / "raw.jsonl.gz"
    recorder = RawRecorder(path, "upbit", 1_000)
    with capture_logs() as logs:
        for number in range(100_000):
            recorder.received(0, number, f"{hash(str(number))}")
    [told] = logs
    assert told["event"] == "raw tape is full, recording has ended"
    assert path.stat().st_size < 100_000
    assert len(list(read_raw(path))) == told["lines"]


def test_a_tape_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(RawTapeError, match=r"raw.gz: No such file"):
        RawRecorder(tmp_path / "missing" / "raw.gz", "upbit", 1_000)


def test_a_full_disk_ends_the_recording_and_nothing_else() -> None:
    recorder = RawRecorder(Path("/dev/full"), "upbit", 10**9)
    with capture_logs() as logs:
        for number in range(50_000):
            recorder.received(0, number, f"{hash(str(number))}")
        recorder.close()
    assert [e["event"] for e in logs] == [
        "raw tape cannot be written, recording has ended"
    ]


def test_a_tape_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for content, rule in (
        (None, "cannot be read: No such file"),
        (b"", "holds nothing"),
        (b"plain text", "gzip damaged after line 0"),
        (
            gzip.compress(b'{"on":0,"at":1,"text":"a"}\n')[:-4],
            "gzip damaged after line",
        ),
        (gzip.compress(b"nonsense\n"), "line 1 is none of one: JSONDecodeError"),
        (gzip.compress(b'{"on":0}\n'), "line 1 is none of one: KeyError"),
        (gzip.compress(b'{"on":0,"at":1,"base64":"*"}\n'), "line 1 is none of one"),
    ):
        path = tmp_path / "raw.jsonl.gz"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RawTapeError) as refused:
            list(read_raw(path))
        assert rule in str(refused.value)


@pytest.mark.redis
def test_a_raw_tape_gives_the_same_trades(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """Over two connections, with a repeated trade and a bad frame."""
    raw = tmp_path / "raw.jsonl.gz"
    one, two, three = deals("KRW-BTC", [11, 12, 13], price="6E-8")

    def first(session: Session) -> None:
        session.send(upbit(one, "SNAPSHOT"), "half a fra", upbit(two))

    def second(session: Session) -> None:
        session.send(upbit(two, "SNAPSHOT"), upbit(three))
        session.wait()

    options: dict[str, Any] = {"symbols": "KRW-BTC"}
    with (
        exchanging(first, second) as exchange,
        feeding(redis_url, Upbit, url=exchange.url, record_raw=raw, **options) as live,
    ):
        found = wait_for(client, 3)
    client.flushall()
    with feeding(redis_url, Upbit, replay_raw=raw) as played:
        eventually(played.ended)
    assert logged(client) == found
    assert [trade["price"] for trade in found] == ["0.00000006"] * 3
    assert played.report.refused == live.report.refused == {"not_json": 1}
    assert not played.report.stopped


@pytest.mark.redis
def test_no_key_is_on_a_raw_tape(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """What is sent is not recorded at all."""
    raw = tmp_path / "raw.jsonl.gz"

    def script(session: Session) -> None:
        session.send('[{"T":"success","msg":"connected"}]')
        session.hear()
        session.send('[{"T":"success","msg":"authenticated"}]')
        session.hear()
        session.send(alpaca(*deals("AAPL", [1])))
        session.wait()

    secrets = {"key": "PUBLIC-PART", "secret": "SECRET-PART"}
    with (
        exchanging(script) as exchange,
        feeding(
            redis_url,
            Alpaca,
            secrets,
            url=exchange.url,
            record_raw=raw,
            symbols="AAPL",
        ),
    ):
        wait_for(client, 1)
    assert "SECRET-PART" in exchange.heard[0]
    text = gzip.decompress(raw.read_bytes())
    assert b"authenticated" in text
    assert b"-PART" not in text
