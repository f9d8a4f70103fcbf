"""What the firehose costs a gateway: share of a core, by rate of trades and viewers.

A real gateway on one core, a real log that grows at an even rate, and viewers on the
other core, who read as fast as they are sent. Printed is how long the gateway used its
core in a second, less what it uses with nobody looking.
"""

import argparse
import http.client
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice

import redis
from machine import NAMESPACE, end_on_signals
from pinned_gateway import Bench, started

from deploy.loadtest.system.machine import describe_machine
from ingest.process.ports import free_port
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_positions import FIELD, stream_key

PARTITIONS = 4
KEPT = 20_000
STEP_S = 0.02
RATES = (750, 2_000, 10_000)
VIEWERS = (0, 1, 4)
SHOWN = 1_000
SETTLES_S = 1.0


def main() -> None:
    """Measure each rate with each number of viewers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each case")
    arguments = parser.parse_args()
    end_on_signals()
    events = Simulator().events(time.time_ns() // 1_000)
    payloads = [event.payload for event in islice(events, KEPT)]
    print(f"Machine: {describe_machine()}\n")
    print("ms of the gateway's core in a second, beyond what it uses without viewers\n")
    print("| trades/s | " + " | ".join(f"{n} viewers" for n in VIEWERS[1:]) + " |")
    print("| ---: |" + " ---: |" * len(VIEWERS[1:]))
    port = free_port()
    with started(operators_port=port) as bench:
        open_log(bench.client, NAMESPACE, PARTITIONS)
        for rate in RATES:
            with appending(bench.client, payloads, rate):
                calm, *busy = (
                    measure(bench, port, viewers, arguments.seconds)
                    for viewers in VIEWERS
                )
            cells = " | ".join(f"{1_000 * (used - calm):.1f}" for used in busy)
            print(f"| {rate:,} | {cells} |", flush=True)


def measure(bench: Bench, port: int, viewers: int, seconds: float) -> float:
    """Return the share of a core that the gateway uses while so many look."""
    with ExitStack() as stack:
        for _ in range(viewers):
            stack.enter_context(looking(port))
        time.sleep(SETTLES_S)
        busy_s, began_s = bench.busy_s(), time.monotonic()
        time.sleep(seconds)
        return (bench.busy_s() - busy_s) / (time.monotonic() - began_s)


@contextmanager
def looking(port: int) -> Iterator[None]:
    """Look at the firehose until the block ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/v1/firehose?rate={SHOWN}")
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"the firehose answered {answer.status}: {answer.read()!r}")
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set() and answer.readline():
            pass

    reader = threading.Thread(target=read)
    reader.start()
    yield
    ended.set()
    reader.join()
    answer.close()
    connection.close()


@contextmanager
def appending(
    client: redis.Redis, payloads: Sequence[bytes], rate: int
) -> Iterator[None]:
    """Let the log grow at a rate until the block ends."""
    ended = threading.Event()

    def append() -> None:
        began_s, count = time.monotonic(), 0
        while not ended.wait(STEP_S):
            due = int((time.monotonic() - began_s) * rate)
            with client.pipeline(transaction=False) as pipe:
                for number in range(count, due):
                    payload = payloads[number % len(payloads)]
                    # The key decides, and each of these payloads has one of its own.
                    partition = partition_of(payload[9:21].decode(), PARTITIONS)
                    key = stream_key(NAMESPACE, partition)
                    pipe.xadd(key, {FIELD: payload}, maxlen=KEPT, approximate=True)
                pipe.execute()
            count = due

    feed = threading.Thread(target=append)
    feed.start()
    yield
    ended.set()
    feed.join()


if __name__ == "__main__":
    main()
