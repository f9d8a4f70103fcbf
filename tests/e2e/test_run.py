"""``tickthrottle run``: one command, everything up, nothing left behind.

One run on a tape for most of the file, until Ctrl-C ends it.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from cli.command_line import app
from gateway.settings import GatewaySettings
from ingest.settings import variables_of
from ingest.sources.simulator import Simulator
from tests.conftest import PATIENCE, eventually
from tests.doc_pages import blocks, commands, text_of
from tests.e2e.processes import (
    Running,
    are_gone,
    family_of,
    last_word,
    name_of,
    running,
)
from tests.ingest.adapters.exchange import Session, exchanging
from tests.ingest.adapters.frames import binance, deals
from tests.metrics import read_samples
from tests.paths import ROOT
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA
from tickthrottle_client.key_v1 import key_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


ASLEEP_S = 15
"""Seven windows, and longer than anything of ours holds without renewing it.

Spark gives an executor up after two minutes by default; that it does not here is an
option, which `tests/throttle/spark/test_session.py` holds.
"""


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the run on a tape."""
    return free_port()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run on a tape has its files."""
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def run(folder: Path, port: int) -> Iterator[Running]:
    """A run on a short tape of five instruments, live."""
    tape = folder / "five.jsonl"
    market = Simulator(seed=5, instruments=5, rate=100, seconds=30)
    events = market.events(1_773_964_800_000_000)
    tape.write_bytes(b"\n".join(event.payload for event in events))
    arguments = ["run", "--port", str(port), "--tape", str(tape), "--speed", "2"]
    environment = {
        **QUICK_JAVA,
        "TICKTHROTTLE_STATE_DIR": str(folder / "state"),
        # So that Spark looks for the executor as soon as it is awake.
        "TICKTHROTTLE_SPARK_CONF": '{"spark.network.timeoutInterval": "1s"}',
    }
    with running(folder, *arguments, **environment) as process:
        process.wait_for("live: ", within_s=100)
        yield process


def fetch(port: int, path: str) -> Any:
    """Return an answer's JSON."""
    url = f"http://127.0.0.1:{port}{path}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def scrape(port: int) -> dict[str, float]:
    """Return every sample that the gateway of a run shows."""
    url = f"http://127.0.0.1:{port + 1}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return read_samples(answer.read().decode())


def check_metrics(folder: Path, port: int) -> None:
    """One scrape shows every part, and all of it moves; Spark's workers add nothing."""

    def has_moved(name: str) -> bool:
        found = scrape(port)
        return any(value > 0 for key, value in found.items() if key.startswith(name))

    for name in (
        "tickthrottle_feed_acknowledged_trades_total",
        "tickthrottle_feed_last_append_timestamp_seconds",
        "tickthrottle_throttle_trades_total{outcome=published}",
        "tickthrottle_throttle_windows_total",
        "tickthrottle_throttle_publish_lag_seconds_count",
        "tickthrottle_throttle_stage_seconds_count{stage=offset_log}",
        "tickthrottle_throttle_window_end_timestamp_seconds",
        "tickthrottle_throttle_lag_trades",
        "tickthrottle_gateway_updates_published_total",
        "tickthrottle_gateway_publish_lag_seconds_count",
        "tickthrottle_gateway_newest_window_timestamp_seconds",
        "tickthrottle_cpu_seconds_total{process=feed}",
        "tickthrottle_processes{process=archive}",
    ):
        eventually(lambda name=name: has_moved(name))  # type: ignore[misc]
    found = scrape(port)
    assert found["tickthrottle_throttle_lease_held"] == 1
    for process in ("feed", "throttle", "gateway", "archive"):
        assert found[f"tickthrottle_processes{{process={process}}}"] == 1
    files = (folder / "metrics").glob("*.db")
    assert len({file.stem.rpartition("_")[2] for file in files}) == 4


def check_commands(folder: Path, port: int) -> None:
    """The commands find the run by themselves, and say so."""
    own = {"TICKTHROTTLE_STATE_DIR": str(folder / "state"), **QUICK_JAVA}
    for command in ("ledger", "reconcile", "trades", "windows"):
        with running(folder, command, **own) as other:
            assert other.process.wait(timeout=60 * PATIENCE) == 0, other.log()
            page = f"http://127.0.0.1:{port}/"
            assert f"with the pipeline of {page} (redis://127.0.0.1:" in other.log()


def check_own_trades(folder: Path, port: int) -> None:
    """The quick start's command moves a price on the board, and another shows it."""
    [command] = commands("docs/quickstart.md", "printf")
    program = Path(sys.executable).parent / "tickthrottle"
    subprocess.run(
        ["bash", "-c", command.replace(".venv/bin/tickthrottle", str(program))],
        env={**os.environ, "TICKTHROTTLE_STATE_DIR": str(folder / "state")},
        check=True,
        timeout=60 * PATIENCE,
    )
    path = "/v1/quotes?isins=KR7035420009"
    eventually(lambda: [r["price"] for r in fetch(port, path)["data"]] == [71900], 20)
    [command] = commands("docs/quickstart.md", "curl")
    words = command.replace(":8000", f":{port}").split()
    if shutil.which(words[0]) is not None:
        said = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        assert json.loads(said)["price"] == 71900


def test_make_run_starts_what_the_command_starts() -> None:
    """As the pages write it, with every variable: options that the command has."""
    pages = [*blocks("README.md", "", "sh"), *blocks("docs/quickstart.md", "sh")]
    pages += blocks("docs/own-page.md", "sh")
    # A line of the text.
    pages += re.findall("`(make run [^`]+)`", text_of("docs/kafka.md"))
    found = re.findall(r"^((\w+)=\S+ )?(make run[^#\n]*)", "\n".join(pages), re.M)
    assert len(found) >= 7
    known = variables_of(GatewaySettings).values()
    for assigned, variable, line in set(found):
        assert not variable or variable in known
        asked = "--dry-run --no-print-directory --old-file .venv/.prepared"
        done = subprocess.run(
            ["bash", "-c", f"{assigned}{line} {asked}"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        last = done.stdout.splitlines()[-1]
        before, _, words = last.partition(".venv/bin/tickthrottle ")
        # CODE= is where Python finds a decoder.
        env = f"env PYTHONPATH='{ROOT}' " if "CODE=" in line else ""
        assert before == f"exec {env}"
        shown = CliRunner().invoke(app, [*shlex.split(words), "--help"])
        assert shown.exit_code == 0, shown.output


def test_a_tape_is_live_on_the_page_and_commands_find_it(
    folder: Path, port: int, run: Running
) -> None:
    """The page and the tape's instruments are there; a second run there is refused."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
        assert b"<html" in page.read()
    eventually(lambda: fetch(port, "/v1/quotes")["count"] == 5, 20)
    known = {
        instrument.isin
        for instrument in Simulator(seed=5, instruments=5, rate=100).listing()
    }
    assert {row["isin"] for row in fetch(port, "/v1/quotes")["data"]} == known
    for words in ("trade log", "gateway", "throttle", "feed"):
        assert words in run.log()

    check_metrics(folder / "state" / f"run-{port}", port)

    check_commands(folder, port)

    check_own_trades(folder, port)

    second = {"TICKTHROTTLE_STATE_DIR": str(folder / "state")}
    with running(folder, "run", "--port", str(port), **second) as other:
        assert other.process.wait(timeout=20 * PATIENCE) == 3
        assert f"already runs on port {port}" in other.log()


def test_a_pipeline_that_was_asleep_goes_on(
    folder: Path, port: int, run: Running
) -> None:
    """SIGSTOP of all its processes; then windows again, and no word of Java."""
    log = folder / "state" / f"run-{port}" / "logs" / "throttle.log"
    eventually(lambda: is_ready(port), 60)
    top = psutil.Process(run.process.pid)
    family = [top, *top.children(recursive=True)]
    [java] = [one.pid for one in family if name_of(one) == "java"]
    tell(family, signal.SIGSTOP)
    before = len(log.read_text("utf-8"))
    # A process may have been started between the look and the signal.
    family = [top, *top.children(recursive=True)]
    tell(family, signal.SIGSTOP)
    time.sleep(ASLEEP_S)
    tell(family[::-1], signal.SIGCONT)
    eventually(lambda: "caught up" in log.read_text("utf-8")[before:], 60)
    eventually(lambda: is_ready(port), 60)
    assert psutil.pid_exists(java)
    assert "Exception" not in log.read_text("utf-8")


def tell(family: list[psutil.Process], number: signal.Signals) -> None:
    """Signal each that is still there: Java runs commands that end at once."""
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)


def test_a_part_that_dies_is_started_again(port: int, run: Running) -> None:
    """SIGKILL of the job, then of the server: it comes back."""
    driver = next(p for p in family_of(run) if last_word(p) == "throttle")
    before = fetch(port, "/health/ready")["window"]
    driver.kill()
    eventually(lambda: "ended (SIGKILL), starting it again" in run.log(), 10)
    eventually(lambda: is_past(port, before + 10_000), 100)
    assert len(fetch(port, "/v1/windows?limit=5&rows=false")["data"]) == 5
    check_server_comes_back(port, run)


def check_server_comes_back(port: int, run: Running) -> None:
    """SIGKILL of the server: windows go on in a new epoch, nothing else has ended."""
    before, ended = fetch(port, "/health/ready"), run.log().count("starting it again")
    server = next(p for p in family_of(run) if name_of(p) == "valkey-server")
    server.kill()
    eventually(lambda: "valkey    ended (SIGKILL), starting it again" in run.log(), 10)
    eventually(lambda: is_past(port, before["window"] + 10_000), 100)
    assert fetch(port, "/health/ready")["epoch"] != before["epoch"]
    assert run.log().count("starting it again") == ended + 1


def is_past(port: int, window: int) -> bool:
    """Tell whether a window was published."""
    try:
        return bool(fetch(port, "/health/ready")["window"] >= window)
    except OSError:
        return False


def is_ready(port: int) -> bool:
    """Tell whether windows come."""
    return is_past(port, 0)


def test_ctrl_c_ends_everything(run: Running) -> None:
    """5 s later no process is left."""
    family = family_of(run)
    began = time.monotonic()
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(timeout=20 * PATIENCE) == 0, run.log()
    assert time.monotonic() - began < 5 * PATIENCE
    assert are_gone(family)


def test_a_live_market_is_on_the_board_and_a_killed_parent_leaves_nothing(
    tmp_path: Path,
) -> None:
    """An exchange in place of the simulator: its list, its trades, its own fields."""
    port = free_port()
    told = deals("BTCUSDT", range(1, 200), price="71900.50")

    def script(session: Session) -> None:
        for deal in told:
            now_ms = time.time_ns() // 1_000_000
            session.send(binance(replace(deal, time_ms=now_ms)))
            if session.exchange.ended.wait(0.5):
                return

    arguments = ["run", "--port", str(port), "--feed"]
    with exchanging(script) as exchange:
        environment = {
            **QUICK_JAVA,
            "PYTHONPATH": str(ROOT),
            "LOCAL_EXCHANGE": exchange.url,
            "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
        }
        feed = "tests.ingest.adapters.local_feeds:Local"
        with running(tmp_path, *arguments, feed, **environment) as process:
            process.wait_for("live trades of", within_s=100)
            process.wait_for("Ctrl-C stops", within_s=100)
            isin = key_of("QN", "BTCUSDT")
            quote = fetch(port, "/v1/quotes/BTCUSDT")
            assert quote["isin"] == isin
            assert quote["price"] == 71900.5
            assert (quote["venue"], quote["side"]) == ("BINANCE", "B")
            # Told by the feed itself, a few seconds after its first trade.
            eventually(lambda: fetch(port, "/v1/instruments")["data"][0]["prev_close"])
            [instrument] = fetch(port, "/v1/instruments")["data"]
            assert (instrument["code"], instrument["name"]) == (
                "BTCUSDT",
                "BTCUSDT by name",
            )
            assert instrument["prev_close"] == 70000.5

            family = family_of(process)
            os.kill(process.process.pid, signal.SIGKILL)
            process.process.wait()
            eventually(lambda: are_gone(family), 10)
