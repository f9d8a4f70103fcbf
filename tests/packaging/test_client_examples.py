"""Every example of a client prints the price, and what its page shows below it.

A real gateway serves them a trade of the simulated market, as `make run` does.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import redis

from gateway.app import STATIC
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from tests.conftest import leave_out
from tests.doc_pages import blocks, text_of
from tests.gateway.publisher import load_instruments
from tests.gateway.samples import INSTRUMENT_LIST, SAMSUNG
from tests.gateway.servers import Gateway, running_gateway
from tests.go import go_environment
from tests.node import node_command
from throttle.testing.driver import START_MS, ThrottleDriver

CLIENTS, TRADES = "docs/clients.md", "docs/rows.md"
FRONT, JS, PYTHON = "README.md", "clients/js/README.md", "clients/python/README.md"
PRICE = "71900.50"
PARTITIONS = 4
ENDLESS = {FRONT, JS, PYTHON, TRADES}
"""Pages whose examples follow the stream until they are ended."""

ANY = {"connection", "epoch"}
"""Fields of frames whose text is another one each time."""


def payload() -> bytes:
    """Return a trade of the simulated market, with a price that has digits to lose."""
    events = Simulator(instruments=2).events(START_MS * 1_000)
    found = next(e.payload for e in events if SAMSUNG.encode() in e.payload)
    return re.sub(rb'"price":"\d+"', b'"price":"%b"' % PRICE.encode(), found)


@pytest.fixture
def driver(client: redis.Redis, redis_url: str) -> Iterator[ThrottleDriver]:
    """A job that has published the trade in a window; the table names instruments."""
    load_instruments(client, INSTRUMENT_LIST)
    with ThrottleDriver(redis_url=redis_url, partitions=PARTITIONS) as driver:
        append(driver, 100)
        driver.turn_clock(2_000)
        yield driver


def append(driver: ThrottleDriver, at_ms: int) -> None:
    """Append the trade to the partition that a feed appends it to."""
    driver.payload(payload(), at_ms=at_ms, partition=partition_of(SAMSUNG, PARTITIONS))


@pytest.fixture
def gateway(driver: ThrottleDriver, redis_url: str) -> Iterator[Gateway]:
    """A gateway that has the window."""
    with running_gateway(redis_url) as running:
        running.wait_until(1)
        yield running


def example(page: str, language: str, number: int, port: int) -> str:
    """Return a page's example; only the port differs."""
    return blocks(page, language)[number].replace(":8000", f":{port}")


def shown(page: str) -> dict[str, list[str]]:
    """Return, by language, the lines that a page shows below each of its examples."""
    pairs = re.findall(
        r"^```(\w+)\n((?:(?!```).)*)^```\n\n^```(?:text|json)\n(.*?)^```$",
        text_of(page),
        re.DOTALL | re.MULTILINE,
    )
    lines: dict[str, list[str]] = {}
    for language, _, output in pairs:
        lines.setdefault(language, []).append(output)
    return lines


def shape(line: str) -> Any:
    """Return what a printed line is whatever the price, its time and number are."""

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: "" if k in ANY else of(v) for k, v in value.items()}
        if isinstance(value, list):
            return [of(one) for one in value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return 0 if is_number else value

    try:
        return of(json.loads(line))
    except ValueError:
        return [re.sub(r"^\d+(\.\d+)?$", "0", word) for word in line.split()]


def command(language: str, folder: Path, text: str) -> list[str]:
    """Write an example to a folder; return what runs it there."""
    file = folder / f"main.{language}"
    file.write_text(text)
    if language == "python":
        return [sys.executable, "-u", str(file)]
    if language == "js":
        (folder / "package.json").write_text(
            '{"name":"tickthrottle-client","type":"module","exports":"./tick.js"}'
        )
        shutil.copy(STATIC / "tick.js", folder)
        return [*node_command(), str(file)]
    needed = "curl" if language == "sh" else language
    if shutil.which(needed) is None:
        leave_out(f"the example for {needed}")
    return ["go", "run", str(file)] if language == "go" else ["sh", str(file)]


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run an example until the block ends."""
    go = {"GOTOOLCHAIN": "local", "GO111MODULE": "off", "CGO_ENABLED": "0"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**go_environment(), **go},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until_price(process: subprocess.Popen[str]) -> list[str]:
    """Return the lines that are printed up to the one that has the price."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if PRICE.rstrip("0") in line:
            break
    return lines


@contextmanager
def trading(driver: ThrottleDriver) -> Iterator[None]:
    """Append the trade again and again until the block ends."""
    is_over = Event()

    def run() -> None:
        at_ms = 2_000
        while not is_over.wait(0.05):
            append(driver, at_ms)
            at_ms += 1

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


# Go compiles its library the first time.
@pytest.mark.timeout(600)
@pytest.mark.redis
@pytest.mark.parametrize(
    ("page", "language", "number"),
    [
        (CLIENTS, "sh", 0),
        # As a coroutine, and without asyncio.
        (CLIENTS, "python", 0),
        (CLIENTS, "python", 1),
        (CLIENTS, "js", 0),
        pytest.param(CLIENTS, "go", 0, marks=pytest.mark.slow),
        (FRONT, "js", 0),
        (JS, "js", 0),
        (PYTHON, "python", 0),
        (TRADES, "python", 0),
        (TRADES, "js", 0),
    ],
)
def test_an_example_prints_the_price(
    page: str,
    language: str,
    number: int,
    driver: ThrottleDriver,
    gateway: Gateway,
    tmp_path: Path,
) -> None:
    """A newcomer can copy it, and finds what the page shows."""
    text = example(page, language, number, gateway.port)
    with started(command(language, tmp_path, text), tmp_path) as process:
        with trading(driver):
            lines = until_price(process)
        if page not in ENDLESS:
            rest, _ = process.communicate()
            lines += rest.splitlines()
            assert process.returncode == 0
    # One that reads frames by itself reads a price as a number.
    assert (PRICE.rstrip("0") if page == FRONT else PRICE) in "\n".join(lines)
    if page == CLIENTS:
        told = shown(page)[language][number].splitlines()
        assert [*map(shape, lines)] == [*map(shape, told)]


@pytest.mark.redis
def test_the_example_for_websocat_prints_frames(
    gateway: Gateway, tmp_path: Path
) -> None:
    """One a line, as the page shows; and what is typed goes to the gateway."""
    address = example(CLIENTS, "bash", 0, gateway.port).split("'")[1]
    # Beside the Python of the tests.
    program = str(Path(sys.executable).with_name("websocat"))
    with started([program, "-n", address], tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = until_price(process)
        process.stdin.write('{"op":"ping","id":9}\n')
        process.stdin.flush()
        while '"pong"' not in process.stdout.readline():
            pass
    [told] = shown(CLIENTS)["bash"]
    assert [*map(shape, lines)] == [*map(shape, told.splitlines())]
