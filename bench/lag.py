"""From the end of a window to its update in the hands of the last client.

Starts the whole pipeline as `tickthrottle run` does, connects WebSocket clients, lets
everything warm up and then measures. The clients run in this process, so they compete
with the pipeline for the same cores; what they cost is in the figures.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fill_kafka
from machine import print_table
from websockets.asyncio.client import connect

from bench.load.machine import describe_machine
from deploy.broker import Broker

WINDOW = re.compile(rb'"window":(\d+)')
Receipts = dict[int, float]


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    with (
        tempfile.TemporaryDirectory(prefix="lag-") as folder,
        trade_log(arguments, Path(folder)) as settings,
    ):
        environment = {
            **os.environ,
            **settings,
            "TICKTHROTTLE_STATE_DIR": folder,
            "TICKTHROTTLE_LOG_LEVEL": "debug",
        }
        command = ["-m", "deploy", "run", "--port", str(port), "--rate", arguments.rate]
        pipeline = subprocess.Popen(
            [sys.executable, *command], env=environment, start_new_session=True
        )
        try:
            wait_until_live(port, pipeline)
            receipts, published = asyncio.run(measure(port, arguments))
            memory = memory_mib(pipeline.pid)
        finally:
            pipeline.send_signal(signal.SIGINT)
            pipeline.wait(timeout=20)
        log = Path(folder) / f"run-{port}" / "logs" / "throttle.log"
        batches = read_batches(log)
    report(arguments, receipts, published, batches, memory)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's choices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=100, help="how many to measure")
    parser.add_argument("--warmup", type=int, default=30, help="windows before that")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--keys", default="30", help="issues a client, or 'all'")
    parser.add_argument("--rate", default="900", help="trades per second")
    parser.add_argument("--log", choices=["redis", "kafka"], default="redis")
    parser.add_argument("--partitions", type=int, default=4)
    return parser.parse_args()


@contextmanager
def trade_log(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, str]]:
    """Yield what the pipeline has to be told of its log; a broker runs meanwhile."""
    if arguments.log == "redis":
        yield {"TICKTHROTTLE_PARTITIONS": str(arguments.partitions)}
        return
    with Broker(folder / "kafka", heap_mb=1_024, is_quick=False) as broker:
        fill_kafka.create_topic(broker.servers, arguments.partitions)
        yield fill_kafka.settings(broker.servers)


def wait_until_live(port: int, pipeline: subprocess.Popen[bytes]) -> None:
    """Wait until readiness says yes."""
    while pipeline.poll() is None:
        try:
            fetch(port, "/health/ready")
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the pipeline did not start")


def fetch(port: int, path: str) -> Any:
    """Return the JSON answer of the gateway."""
    url = f"http://127.0.0.1:{port}{path}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


async def measure(
    port: int, arguments: argparse.Namespace
) -> tuple[dict[int, float], dict[int, float]]:
    """Return when the last client got each window, and when it was published."""
    await asyncio.sleep(2 * arguments.warmup)
    issues = [row["isin"] for row in fetch(port, "/v1/quotes")["data"]]
    choice = random.Random(1)
    receipts: list[Receipts] = [{} for _ in range(arguments.clients)]
    clients = []
    for mine in receipts:
        keys = ["*"]
        if arguments.keys != "all":
            keys = choice.sample(issues, int(arguments.keys))
        clients.append(asyncio.create_task(run_client(port, keys, mine)))
    # The first windows after joining carry the snapshots.
    await asyncio.sleep(6)
    published: dict[int, float] = {}
    since_ms = time.time() * 1000
    while len(published) < arguments.windows:
        await asyncio.sleep(10)
        answer = await asyncio.to_thread(fetch, port, "/v1/windows?limit=20&rows=false")
        for window in answer["data"]:
            if window["window"] >= since_ms:
                published[window["window"]] = window["published"] / 1000
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    last: dict[int, float] = defaultdict(float)
    for mine in receipts:
        for window, received in mine.items():
            last[window] = max(last[window], received)
    return dict(last), published


async def run_client(port: int, keys: list[str], receipts: Receipts) -> None:
    """Subscribe and note when each update arrived, nothing more."""
    url = f"ws://127.0.0.1:{port}/v1/stream"
    async with connect(url, max_size=None, compression=None) as websocket:
        await websocket.send(json.dumps({"op": "subscribe", "id": 1, "keys": keys}))
        while True:
            frame = await websocket.recv(decode=False)
            received = time.time() * 1000
            found = WINDOW.search(frame[:200])
            if frame.startswith(b'{"type":"update"') and found:
                receipts[int(found[1])] = received


def memory_mib(pid: int) -> float:
    """Return what the pipeline's processes use together, shared pages once."""
    import psutil

    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(process.memory_full_info().pss for process in family) / 2**20


def read_batches(log: Path) -> dict[int, dict[str, float]]:
    """Return {window: where its batch spent its time} from the throttle's log."""
    batches: dict[int, dict[str, float]] = {}
    progress: dict[int, dict[str, float]] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        if not line.startswith("{"):
            continue
        fields = json.loads(line)
        if fields["event"] == "batch" and fields["windows"] == 1:
            batches[fields["batch"]] = fields
        elif fields["event"] == "progress":
            progress[fields["batch"]] = fields
    return {
        int(fields["window"]): {**progress[batch], **fields}
        for batch, fields in batches.items()
        if batch in progress
    }


def report(
    arguments: argparse.Namespace,
    receipts: dict[int, float],
    published: dict[int, float],
    batches: dict[int, dict[str, float]],
    memory: float,
) -> None:
    """Print the tables."""
    windows = sorted(receipts.keys() & published.keys() & batches.keys())
    stages: dict[str, list[float]] = defaultdict(list)
    for window in windows:
        batch = batches[window]
        collected = batch["began_ms"] + batch["plan_ms"] + batch["compute_ms"]
        planning = batch["queryPlanning"] + batch["plan_ms"]
        cut = batch["began_ms"] - batch["walCommit"] - batch["queryPlanning"]
        stages["window's end to the last client"].append(receipts[window] - window)
        stages["- cut, and Spark's own steps"].append(cut)
        stages["- offset log"].append(batch["walCommit"])
        stages["- planning"].append(planning)
        stages["- compute"].append(batch["compute_ms"])
        stages["- publish"].append(published[window] - window - collected)
        stages["- fan-out"].append(receipts[window] - published[window])
    keys = "everything" if arguments.keys == "all" else f"{arguments.keys} issues each"
    print_table(
        f"{len(windows)} windows, {arguments.rate} trades/s, "
        f"{arguments.clients} clients, {keys}, {arguments.partitions} partitions of "
        f"{arguments.log}",
        stages.items(),
    )
    print(f"\nAll processes together: {memory:.0f} MiB (PSS)")
    print(f"Machine: {describe_machine()}")


if __name__ == "__main__":
    main()
