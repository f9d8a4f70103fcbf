"""How many trades a second come into a log of Redis over HTTP, and how soon.

`tickthrottle intake` runs as a process against a server of its own. Each client is a
thread with a connection that stays open, and sends one request after the other. A
request is answered when its trades are in the log.
"""

import argparse
import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from machine import end_on_signals, percentile, running_server

from deploy.loadtest.system.machine import describe_machine
from ingest.process.ports import free_port
from ingest.sources.simulator import Simulator

STARTS_WITHIN_S = 30


def main() -> None:
    """Send batches of several sizes from several clients, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each row")
    parser.add_argument("--batches", default="1,100,1000", help="trades a request")
    parser.add_argument("--clients", type=int, default=4)
    arguments = parser.parse_args()
    end_on_signals()
    market = Simulator(rate=10_000, seconds=1, repeats=0)
    trades = [orjson.loads(e.payload) for e in market.events(1_773_964_800_000_000)]
    print("| trades a request | trades/s | requests/s | ms p50 | p99 |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for size in map(int, arguments.batches.split(",")):
        body = orjson.dumps(trades[:size])
        with running_server() as server, _intake(server.url) as port:
            times_ms = _send(port, body, arguments.clients, arguments.seconds)
        rate = len(times_ms) / arguments.seconds
        p50, p99 = percentile(times_ms, 0.5), percentile(times_ms, 0.99)
        print(
            f"| {size:,} | {rate * size:,.0f} | {rate:,.0f} | {p50:.1f} | {p99:.1f} |"
        )
    print(f"\n{arguments.clients} clients. Machine: {describe_machine()}")


@contextmanager
def _intake(url: str) -> Iterator[int]:
    port = free_port()
    program = Path(sys.executable).parent / "tickthrottle"
    process = subprocess.Popen(
        [program, "intake", "--port", str(port), "--redis-url", url],
        env={"TICKTHROTTLE_REQUESTS_PER_SECOND": "100000"},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not _is_ready(port):
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit("the intake did not start")
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _send(port: int, body: bytes, clients: int, seconds: float) -> list[float]:
    until_s = time.monotonic() + seconds
    times_ms: list[float] = []

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"content-type": "application/json"}
        while (began_s := time.monotonic()) < until_s:
            connection.request("POST", "/v1/trades", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"answered with {answer.status}")
            times_ms.append((time.monotonic() - began_s) * 1_000)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times_ms


if __name__ == "__main__":
    main()
