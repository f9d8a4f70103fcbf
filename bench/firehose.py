"""What the firehose costs a gateway: share of a core, by rate of trades and viewers.

A real gateway on one core, a real log that a simulated market fills, and viewers on the
other core, who read as fast as they are sent. Printed is how long the gateway used its
core in a second, less what it uses with nobody looking.
"""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from machine import feeding, options, print_machine, print_rows
from pinned_gateway import Bench, started

from ingest.process.ports import free_port

RATES = (750, 2_000, 10_000)
VIEWERS = (0, 1, 4)
SHOWN = 1_000
SETTLES_S = 3.0


def main() -> None:
    arguments = options(__doc__, seconds=(10.0, "of each case"))
    title = "ms of the gateway's core in a second, beyond what it uses without viewers"
    heads = "trades/s", *(f"{viewers} viewers" for viewers in VIEWERS[1:])
    port, rows = free_port(), []
    with started(operators_port=port) as bench:
        for rate in RATES:
            with feeding(bench.server, rate):
                calm, *busy = (
                    measure(bench, port, viewers, arguments.seconds)
                    for viewers in VIEWERS
                )
            cells = [f"{1_000 * (used - calm):.1f}" for used in busy]
            heads = [f"{viewers} viewers" for viewers in VIEWERS[1:]]
            rows.append(
                {"trades/s": f"{rate:,}", **dict(zip(heads, cells, strict=True))}
            )
    print_rows(title, rows)
    print_machine()


def measure(bench: Bench, port: int, viewers: int, seconds: float) -> float:
    with ExitStack() as stack:
        for _ in range(viewers):
            stack.enter_context(looking(port))
        time.sleep(SETTLES_S)
        busy_s, began_s = bench.busy_s(), time.monotonic()
        time.sleep(seconds)
        return (bench.busy_s() - busy_s) / (time.monotonic() - began_s)


@contextmanager
def looking(port: int) -> Iterator[None]:
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


if __name__ == "__main__":
    main()
