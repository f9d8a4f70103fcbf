"""``tickthrottle run``: one command, everything up, nothing left behind."""

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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.cli import app
from ingest.sources.simulator import Simulator
from ingest.symbol_key import key_of
from tests.conftest import PATIENCE, eventually
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
from tests.pages import blocks, commands, text_of
from tests.paths import ROOT
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


@pytest.fixture
def port() -> int:
    """The port of a run."""
    return free_port()


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A short tape of five issues."""
    path = tmp_path / "five.jsonl"
    market = Simulator(seed=5, issues=5, rate=100, seconds=30)
    events = market.events(1_773_964_800_000_000)
    path.write_bytes(b"\n".join(event.payload for event in events))
    return path


@pytest.fixture
def run(tmp_path: Path, port: int, tape: Path) -> Iterator[Running]:
    """A run on a tape, live."""
    arguments = ["run", "--port", str(port), "--tape", str(tape), "--speed", "2"]
    environment = {
        **QUICK_JAVA,
        "TICKTHROTTLE_STATE_DIR": str(tmp_path / "state"),
    }
    with running(tmp_path, *arguments, **environment) as process:
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
    path = "/v1/quotes?isins=KR7005930003"
    eventually(lambda: [r["price"] for r in fetch(port, path)["data"]] == [71900], 20)
    [command] = commands("docs/quickstart.md", "curl")
    words = command.replace(":8000", f":{port}").split()
    if shutil.which(words[0]) is not None:
        said = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        assert json.loads(said)["price"] == 71900


def test_make_run_starts_what_the_command_starts() -> None:
    """As the pages write it, with every variable: options that the command has."""
    pages = "\n".join(blocks("README.md", "", "sh")) + text_of("docs/quickstart.md")
    lines = {line.partition("#")[0] for line in re.findall("^make run.*", pages, re.M)}
    assert len(lines) >= 5
    for line in lines:
        asked = ("--dry-run", "--no-print-directory", "--old-file", ".venv/.prepared")
        done = subprocess.run(
            [*line.split(), *asked],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        words = shlex.split(done.stdout.splitlines()[-1])
        assert words[:2] == ["exec", ".venv/bin/tickthrottle"]
        shown = CliRunner().invoke(app, [*words[2:], "--help"])
        assert shown.exit_code == 0, shown.output


def test_a_tape_is_live_on_the_page_and_ctrl_c_ends_everything(
    tmp_path: Path, port: int, run: Running
) -> None:
    """The page and the tape's issues are there; 5 s after Ctrl-C nothing is."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as page:
        assert b"<html" in page.read()
    eventually(lambda: fetch(port, "/v1/quotes")["count"] == 5, 20)
    known = {issue.isin for issue in Simulator(seed=5, issues=5, rate=100).listing()}
    assert {row["isin"] for row in fetch(port, "/v1/quotes")["data"]} == known
    for words in ("trade log", "gateway", "throttle", "feed"):
        assert words in run.log()

    check_metrics(tmp_path / "state" / f"run-{port}", port)

    check_commands(tmp_path, port)

    check_own_trades(tmp_path, port)

    second = {"TICKTHROTTLE_STATE_DIR": str(tmp_path / "state")}
    with running(tmp_path, "run", "--port", str(port), **second) as other:
        assert other.process.wait(timeout=20 * PATIENCE) == 3
        assert f"already runs on port {port}" in other.log()

    family = family_of(run)
    began = time.monotonic()
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(timeout=20 * PATIENCE) == 0, run.log()
    assert time.monotonic() - began < 5 * PATIENCE
    assert are_gone(family)


def test_a_part_that_dies_is_started_again_and_a_killed_parent_leaves_nothing(
    port: int, run: Running
) -> None:
    """SIGKILL of the job or the server: it comes back. Of the parent: all is ended."""
    family = family_of(run)
    driver = next(p for p in family if last_word(p) == "throttle")
    before = fetch(port, "/health/ready")["window"]
    driver.kill()
    eventually(lambda: "ended (SIGKILL), starting it again" in run.log(), 10)
    eventually(lambda: is_past(port, before + 10_000), 100)
    assert len(fetch(port, "/v1/windows?limit=5&rows=false")["data"]) == 5
    check_server_comes_back(port, run)

    family = family_of(run)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    eventually(lambda: are_gone(family), 10)


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


def test_a_taken_port_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Nothing is started when the page could not be served."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        state = {"TICKTHROTTLE_STATE_DIR": str(tmp_path / "state")}
        with running(tmp_path, "run", "--port", str(port), **state) as process:
            assert process.process.wait(timeout=20 * PATIENCE) == 3
            assert f"port {port}: Address already in use" in process.log()
            assert len(process.log().splitlines()) == 1


def test_a_live_market_is_on_the_board(tmp_path: Path, port: int) -> None:
    """An exchange in place of the simulator: its list, its trades, its own fields."""
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
            eventually(lambda: fetch(port, "/v1/issues")["data"][0]["prev_close"])
            [issue] = fetch(port, "/v1/issues")["data"]
            assert (issue["code"], issue["name"]) == ("BTCUSDT", "BTCUSDT by name")
            assert issue["prev_close"] == 70000.5
