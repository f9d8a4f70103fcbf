"""Plays the newcomer: each way of the documents to a price, by their own commands.

Starts the whole pipeline as `make run` does, with a simulated market, and then makes a
plain page, one of React and one of Vue on another origin, runs the notebook, makes
Parquet of a CSV file, and shows a topic of Kafka on a board. Prints for each how many
steps it took, and the seconds until its first price was there. Needs chromium and npm,
`make kafka-jars` and `make notebook`. `python -m tests.newcomer.run_newcomer`
"""

import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from playwright.sync_api import Page, sync_playwright

from loadtest.system.machine import describe_machine
from tests.conftest import eventually
from tests.doc_pages import blocks
from tests.e2e.conftest import ARGUMENTS
from tests.e2e.processes import running
from tests.kafka_broker.broker import Broker
from tests.newcomer.notebooks import printed, run_notebook
from tests.newcomer.roads import (
    FRAMEWORKS,
    Newcomer,
    framework_page,
    plain_page,
)
from tests.newcomer.topic_board import STEPS, running_topic_board
from tests.ports import free_port

TRADES = """isin,price,size,time
KR7005930003,71900,10,2026-11-27T00:00:00.100Z
KR7005930003,71950.50,5,2026-11-27T00:00:01.900Z
KR7000660001,199400,1,2026-11-27T00:00:02.000Z
"""

Made = AbstractContextManager[str]


def main() -> None:
    """Go every way, and print a table."""
    rows: list[tuple[str, int, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = {way: _arrive(folder, way) for way in ("plain", *FRAMEWORKS)}
        port = next(iter(people.values())).gateway_port
        origins = ",".join(one.origins for one in people.values())
        began_s = time.monotonic()
        with running(
            folder,
            *("run", "--port", str(port)),
            TICKTHROTTLE_ALLOWED_ORIGINS=origins,
            TICKTHROTTLE_STATE_DIR=str(folder / "state"),
        ) as pipeline:
            pipeline.wait_for("Ctrl-C stops everything", within_s=240)
            rows.append(("the pipeline itself", 1, time.monotonic() - began_s))
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=ARGUMENTS
                )
                for way, newcomer in people.items():
                    make: Callable[[Newcomer], Made] = (
                        plain_page
                        if way == "plain"
                        else partial(framework_page, framework=way)
                    )
                    page = chromium.new_page()
                    seconds = _first_price(page, make(newcomer))
                    rows.append((f"a page, {way}", len(newcomer.steps), seconds))
                    page.close()
                chromium.close()
            began_s = time.monotonic()
            price, _ = printed(run_notebook(folder, port))
            assert float(price) > 0
            rows.append(("a notebook", 2, time.monotonic() - began_s))
        rows.append(("a CSV file to Parquet", 1, _backtest(folder)))
        rows.append(("a topic to the board", len(STEPS), _show_topic(folder)))
    print("| way | steps | first price after |\n| --- | ---: | ---: |")
    for way, steps, seconds in rows:
        print(f"| {way} | {steps} | {seconds:.1f} s |")
    print(f"\nMachine: {describe_machine()}")


_GATEWAY_PORT = free_port()


def _arrive(folder: Path, way: str) -> Newcomer:
    own = folder / way
    own.mkdir()
    return Newcomer(own, _GATEWAY_PORT)


def _first_price(page: Page, made: Made) -> float:
    began_s = time.monotonic()
    with made as address:
        page.goto(address)
        title = page.locator("h1").first
        eventually(lambda: any(map(str.isdigit, title.text_content() or "")), 60)
        return time.monotonic() - began_s


def _backtest(folder: Path) -> float:
    (folder / "day.csv").write_text(TRADES)
    lines = "".join(blocks("docs/feeding.md", "")).splitlines()
    command = next(line for line in lines if line.startswith("tickthrottle backtest"))
    command = command.replace("day.csv.gz", "day.csv")
    newcomer = Newcomer(folder, 0)
    began_s = time.monotonic()
    words = shlex.split(command)[1:]
    newcomer.type_in(shlex.join([sys.executable, "-m", "tickthrottle", *words]))
    seconds = time.monotonic() - began_s
    assert pq.read_table(folder / "day.parquet").num_rows == 2
    return seconds


def _show_topic(folder: Path) -> float:
    broker = Broker(folder / "kafka")
    broker.format()
    broker.start()
    try:
        began_s = time.monotonic()
        with running_topic_board(folder, broker) as board:
            eventually(lambda: board.price() == 230.15, 240)
            return time.monotonic() - began_s
    finally:
        broker.kill()


if __name__ == "__main__":
    main()
