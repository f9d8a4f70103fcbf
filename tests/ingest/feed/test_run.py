"""Whole feeds into a real log."""

import gzip
import os
import signal
import socket
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from ingest.feed.pacer import FeedReport
from ingest.feed.receipt import read_receipt
from ingest.feed.run import FeedError, run_pipe, run_replay, run_simulator
from ingest.settings import IngestSettings
from ingest.sources.faults import Faults
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import PipeError, PipeOptions, TapeError
from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from tests.conftest import eventually, input_file
from tests.ports import free_port
from tickthrottle_client.log_v1 import position_of, stream_key


def make_settings(url: str, **changes: Any) -> IngestSettings:
    """Settings of a feed into the given server."""
    return IngestSettings(redis_url=url, namespace="test", **changes)


def logged(client: redis.Redis) -> list[bytes]:
    """Every payload of the log, partition after partition."""
    info = open_log(client, "test", 1)
    reader = RedisLogReader(client, "test", info)
    tail = reader.tail(1 << 41)
    ranges = {
        p: (0, end) for p, end in zip(tail.partitions, tail.positions, strict=True)
    }
    return [
        payload
        for _, chunk in reader.read(ranges)
        for payload in chunk.payloads.to_pylist()
    ]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A packed tape of 500 trades over ten seconds, with one bad line."""
    events = Simulator(rate=50, seconds=10).events(1_448_539_200_000_000)
    lines = [event.payload for event in events]
    lines.insert(9, b"nonsense")
    path = tmp_path / "tape.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    return path


@pytest.mark.redis
def test_simulated_market_is_in_the_log(redis_url: str, client: redis.Redis) -> None:
    """Every acknowledged trade is in the log, stamped with the present."""
    simulator = Simulator(rate=5_000, seconds=0.5, repeats=0)
    before_us = client.time()[0] * 1_000_000
    report = run_simulator(make_settings(redis_url), simulator)
    payloads = logged(client)
    assert report.acknowledged == len(payloads) == len(set(payloads)) > 2_000
    assert not report.stopped
    times = [Trade.from_wire(payload).time_us for payload in payloads]
    assert before_us <= min(times)
    assert max(times) < before_us + 60_000_000


@pytest.mark.redis
def test_tape_is_in_the_log(redis_url: str, client: redis.Redis, tape: Path) -> None:
    """Every valid trade of a tape is in the log; the report tells of the others."""
    report = run_replay(make_settings(redis_url), [tape], ReplayOptions(speed=1_000))
    assert report.acknowledged == len(logged(client)) == 500
    assert report.refused == {"not_json": 1}
    assert report.refusals[0].startswith("line 10: not_json")


@pytest.mark.redis
def test_a_tape_out_of_order_is_told_before_the_feed_starts(
    redis_url: str, client: redis.Redis
) -> None:
    tape = input_file("b/b40_sorted_by_symbol.csv")
    with capture_logs() as logs:
        run_replay(make_settings(redis_url), [tape], ReplayOptions(speed=100))
    assert logs[0]["log_level"] == "warning"
    assert "is not in the order of time: trade 8" in logs[0]["event"]
    times = Counter(Trade.from_wire(payload).time_us for payload in logged(client))
    assert list(times.values()) == [3] * 7


@pytest.mark.redis
def test_a_spoiled_tape_is_in_the_log(
    redis_url: str, client: redis.Redis, tape: Path
) -> None:
    """Two tapes by a profile; broken copies come on top and are acknowledged, too."""
    profile = Profile.parse("2000:0.25s")
    options = ReplayOptions(loop=0, profile=profile)
    faults = Faults(disorder=0.5, malformed=1.0)
    report = run_replay(make_settings(redis_url), [tape, tape], options, faults=faults)
    assert report.acknowledged == len(logged(client)) == 1_000


@pytest.mark.redis
def test_receipt_says_what_is_in_the_log(
    redis_url: str, client: redis.Redis, tape: Path, tmp_path: Path
) -> None:
    """For each partition the count, and the positions of the first and the last."""
    path = tmp_path / "receipt.json"
    options = ReplayOptions(speed=1_000)
    report = run_replay(make_settings(redis_url), [tape], options, report_to=path)
    receipt = read_receipt(path.read_bytes())
    info = open_log(client, "test", 1)
    assert receipt.ended
    assert receipt.log_id == info.log_id
    assert sum(tally.acknowledged for tally in receipt.partitions) == 500
    assert report.in_doubt == 0
    for partition, tally in enumerate(receipt.partitions):
        entries = client.xrange(stream_key("test", partition))
        assert tally.acknowledged == len(entries)
        assert tally.first == position_of(entries[0][0])
        assert tally.last == position_of(entries[-1][0])


@pytest.mark.redis
def test_report_that_cannot_be_written_is_told_at_the_start(
    redis_url: str, tmp_path: Path
) -> None:
    """The sentence names the path and the reason."""
    path = tmp_path / "missing" / "receipt.json"
    with pytest.raises(FeedError, match=r"^report .*receipt.json: No such file"):
        run_simulator(make_settings(redis_url), Simulator(), report_to=path)


@pytest.mark.redis
def test_progress_is_logged_where_there_is_no_terminal(
    redis_url: str, tape: Path
) -> None:
    """The log lines name the server, without its password, and the outcome."""
    url = redis_url.replace("redis://", "redis://:@")
    with capture_logs() as logs:
        run_replay(make_settings(url), [tape], ReplayOptions(rate=100_000))
    assert [entry["event"] for entry in logs] == [
        "replay: started",
        "replay: finished",
        "replay: refused",
    ]
    assert logs[0]["server"] == redis_url


@pytest.mark.redis
def test_existing_log_keeps_its_partitions(redis_url: str, client: redis.Redis) -> None:
    """Other settings than the log's own are told and do no harm."""
    open_log(client, "test", 2)
    with capture_logs() as logs:
        report = run_simulator(
            make_settings(redis_url, partitions=8), Simulator(rate=1_000, seconds=0.1)
        )
    assert report.acknowledged == len(logged(client)) > 50
    told = next(entry for entry in logs if "partitions" in entry)
    assert (told["partitions"], told["asked_for"]) == (2, 8)


@pytest.mark.redis
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_feed_with_its_report(
    redis_url: str, client: redis.Redis, number: signal.Signals
) -> None:
    """A signal, even twice, ends the feed; what was acknowledged is in the log."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}

    def interrupt() -> None:
        eventually(lambda: logged(client))
        signal.pthread_kill(threading.main_thread().ident or 0, number)
        signal.pthread_kill(threading.main_thread().ident or 0, number)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    report = run_simulator(make_settings(redis_url), Simulator(rate=1_000))
    waiting.join()
    assert report.stopped
    assert report.acknowledged == len(logged(client)) > 0
    assert {n: signal.getsignal(n) for n in handlers} == handlers


@pytest.mark.redis
@pytest.mark.parametrize("given", [True, False])
def test_feed_in_a_thread_leaves_signals_alone(
    redis_url: str, client: redis.Redis, tape: Path, given: bool
) -> None:
    """A caller with its own stop, in any thread, ends the feed with it."""
    stop = threading.Event() if given else None
    reports: list[FeedReport] = []
    options = ReplayOptions(rate=5_000, loop=0 if given else 1)

    def run() -> None:
        reports.append(run_replay(make_settings(redis_url), [tape], options, stop))

    thread = threading.Thread(target=run)
    thread.start()
    if stop:
        eventually(lambda: len(logged(client)) > 600)
        stop.set()
    thread.join()
    assert reports[0].stopped == given
    assert reports[0].acknowledged == len(logged(client))


def test_server_that_is_not_there_is_one_clear_sentence() -> None:
    """The error names the address and never the password."""
    url = f"redis://:secret@127.0.0.1:{free_port()}/3"
    with pytest.raises(FeedError, match="no Redis or Valkey") as caught:
        run_simulator(make_settings(url), Simulator())
    assert "secret" not in str(caught.value)
    assert url.rpartition("@")[2] in str(caught.value)


def test_client_never_tries_again_unseen() -> None:
    """A connection that breaks is the pacer's to count, so it is tried once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        calls: list[int] = []

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()
                    calls.append(1)

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(FeedError, match="no Redis or Valkey server answers"):
            run_simulator(
                make_settings(f"redis://127.0.0.1:{server.getsockname()[1]}"),
                Simulator(),
            )
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert len(calls) == 1


@pytest.mark.redis
def test_server_that_refuses_is_one_clear_sentence(
    redis_url: str, client: redis.Redis
) -> None:
    """A key in the way or a wrong password is told as such."""
    client.set("test:log", "in the way")
    with pytest.raises(FeedError, match=r"refuses: .*WRONGTYPE"):
        run_simulator(make_settings(redis_url), Simulator())
    url = redis_url.replace("redis://", "redis://nobody:secret@")
    with pytest.raises(FeedError, match="refuses: ") as caught:
        run_simulator(make_settings(url), Simulator())
    assert "secret" not in str(caught.value)


def test_wrong_tape_is_told_before_a_server_is_asked(tmp_path: Path) -> None:
    """Without tape and server, the tape is the error."""
    settings = make_settings(f"redis://127.0.0.1:{free_port()}")
    with pytest.raises(TapeError, match="No such file"):
        run_replay(settings, [tmp_path / "none.csv"], ReplayOptions())


@pytest.mark.redis
def test_a_pipe_is_in_the_log(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """Trades leave as they came, in order; the report tells of what was refused."""
    events = Simulator(rate=50, seconds=10).events(1_773_964_804_000_000)
    lines = [event.payload for event in events]
    path = tmp_path / "trades.jsonl"
    path.write_bytes(b"\n".join([*lines[:9], b"nonsense", *lines[9:]]))

    report = run_pipe(make_settings(redis_url, partitions=1), path, PipeOptions())

    assert logged(client) == lines
    assert report.acknowledged == len(lines) == 500
    assert report.refused == {"not_json": 1}
    assert not report.stopped


@pytest.mark.redis
def test_a_pipe_is_stopped_when_what_it_gave_is_in_the_log(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """A feed that is told to stop does not wait for its pipe's writer."""
    fifo, stop = tmp_path / "fifo", threading.Event()
    os.mkfifo(fifo)
    reports: list[FeedReport] = []
    settings = make_settings(redis_url, partitions=1)

    def run() -> None:
        reports.append(run_pipe(settings, fifo, PipeOptions(), stop=stop))

    thread = threading.Thread(target=run)
    thread.start()
    trade = Trade("KR7005930003", 1_773_964_804_000_000, 1, "71900", "1").to_wire()
    with fifo.open("wb", buffering=0) as pipe:
        pipe.write(trade + b"\n")
        eventually(lambda: logged(client) == [trade])
        stop.set()
        thread.join(10)

    [report] = reports
    assert (report.acknowledged, report.stopped, report.unsent) == (1, True, 0)


@pytest.mark.redis
def test_a_pipe_that_cannot_be_read_ends_its_feed(
    redis_url: str, tmp_path: Path
) -> None:
    with pytest.raises(PipeError, match="cannot be read"):
        run_pipe(make_settings(redis_url), tmp_path / "none", PipeOptions())
