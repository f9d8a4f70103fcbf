"""Whether bars and movers keep up with many trades, and what their state becomes.

What they cost the throttle beside them: ``bench/lag.py --analytics bars,movers``.
"""

import statistics
import time
from collections import defaultdict
from contextlib import ExitStack

from machine import (
    feeding,
    memory_by_name,
    options,
    percentile,
    print_machine,
    running_server,
    starting_job,
)

from cli.local.process_tree import job_family, members
from ingest.redis_keys import AnalyticsKeys
from throttle.contract.tally import TallyBook

KEYS = AnalyticsKeys("tt")
SETTLE_S = 20.0


def main() -> None:
    chosen = options(
        __doc__,
        seconds=(120.0, "of feeding"),
        rate=(20_000, "trades per second"),
        only=("bars,movers", "products"),
    )
    keep_up(chosen.rate, chosen.seconds, chosen.only)
    print_machine()


def keep_up(rate: int, seconds: float, only: str) -> None:
    updates: dict[str, list[float]] = defaultdict(list)
    states: dict[str, dict[bytes, bytes]] = {}
    with (
        running_server() as server,
        starting_job(server, "analytics", TICKTHROTTLE_ANALYTICS=only) as job,
        ExitStack() as stack,
    ):
        job.wait_for("analytics ready", within_s=300)
        stack.enter_context(feeding(server, rate))
        time.sleep(SETTLE_S)
        behind: dict[str, list[float]] = defaultdict(list)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            job.check_runs()
            for product in only.split(","):
                clock = server.client.hget(KEYS.progress(product), "clock")
                state = server.client.hgetall(KEYS.state(product))
                # Before its first batch a query says only how often there is one.
                if b"update_ms" in state:
                    states[product] = state
                    updates[product].append(float(state[b"update_ms"]))
                if clock is not None:
                    behind[product].append(time.time() - int(clock) / 1000)
            time.sleep(0.5)
        parts = [*members("server", server.pid), *job_family("", job.group)]
        memory = memory_by_name(parts).total() / 2**20
        books = {
            product: TallyBook.decode(
                product, server.client.hgetall(KEYS.ledger(product))
            )
            for product in behind
        }
    print(f"\n{rate:,} trades/s for {seconds:g} s; {memory:,.0f} MiB\n")
    for product, seconds_behind in behind.items():
        half = len(seconds_behind) // 2
        first, last = (
            statistics.fmean(part)
            for part in (seconds_behind[:half], seconds_behind[half:])
        )
        book = books[product]
        read = sum(t.read for t in book.partitions.values()) if book else 0
        print(f"- {product}: {first:.1f} s behind, then {last:.1f} s; {read:,} read")
        if state := states.get(product):
            size = float(state[b"bytes"]) / 2**20
            print(
                f"  - state: {int(state[b'rows']):,} rows, {size:.1f} MiB, updates of "
                f"{percentile(updates[product], 0.5):.0f} ms (p50)"
            )
        for problem in book.problems() if book else ["no books"]:
            print(f"  - {problem}")


if __name__ == "__main__":
    main()
