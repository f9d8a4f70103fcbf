"""What series cost the job: its own work on a window, and on a backlog.

The rules run as they do in the job, on a real Redis, without Spark: reading, checking,
combining, assembling and publishing. Each way takes its turns in one run.
"""

import time
from argparse import Namespace
from random import Random
from statistics import median, quantiles

from machine import options, print_machine, print_rows

from throttle.testing.driver import ThrottleDriver
from tickthrottle_client.key_v1 import key_of

WAYS: dict[str, dict[str, str]] = {
    "none": {},
    "one venue": {"series": "KRX"},
    "two venues and regular": {"series": "KRX,NXT,regular", "sessions": "XKRX"},
}
W = 2_000
INSTRUMENTS = 2_879


def main() -> None:
    arguments = options(
        __doc__,
        windows=(60, "live windows each"),
        trades=(1_500, "trades of a window"),
        backlog=(60_000, "trades of 30"),
        ways=(",".join(WAYS), "which of them"),
    )
    names = ("series", "p50 ms", "p99 ms", "backlog/s", "rows", "bytes")
    rows = []
    for way in arguments.ways.split(","):
        with ThrottleDriver(partitions=4, **WAYS[way]) as driver:
            cells = way, *measure(driver, arguments)
            rows.append(dict(zip(names, cells, strict=True)))
    print_rows("A window, and a backlog", rows)
    print_machine()


def measure(driver: ThrottleDriver, arguments: Namespace) -> tuple[str, ...]:
    """Return the times of live windows, the rate of a backlog, a window's size."""
    random = Random(41)
    isins = [key_of("QX", f"S{n}") for n in range(INSTRUMENTS)]
    at_ms, took_ms = 0, []
    for _ in range(arguments.windows + 10):
        fill(driver, random, isins, at_ms, arguments.trades, W)
        at_ms += W
        began = time.perf_counter()
        driver.turn_clock(at_ms)
        took_ms.append((time.perf_counter() - began) * 1_000)
    fill(driver, random, isins, at_ms, arguments.backlog, 30 * W)
    at_ms += 30 * W
    began = time.perf_counter()
    driver.turn_clock(at_ms)
    rate = arguments.backlog / (time.perf_counter() - began)
    live = took_ms[10:]
    window = driver.windows()[20]
    size = sum(len(row.encode()) for row in window.rows.values())
    p99 = quantiles(live, n=100)[-1]
    figures = (f"{median(live):.1f}", f"{p99:.1f}", f"{rate:,.0f}")
    return *figures, f"{len(window.rows):,}", f"{size:,}"


def fill(
    driver: ThrottleDriver,
    random: Random,
    isins: list[str],
    at_ms: int,
    trades: int,
    span_ms: int,
) -> None:
    for n in range(trades):
        driver.trade(
            random.choice(isins),
            str(random.randint(100, 900_000)),
            at_ms=at_ms + n * span_ms // trades,
            seq=n,
            size=str(random.randint(1, 500)),
            venue=random.choice(("KRX", "KRX", "NXT")),
        )


if __name__ == "__main__":
    main()
