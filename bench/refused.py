"""A feed that is refused to the last trade: does anything grow?

First the log gets an outage of thirty windows of it, then the job starts, catches up,
and goes on under the same flood. The log is kept for a few seconds only, so whatever
else grows is the job's doing. Ends with exit code 1 if a process is more than 10 %
larger in the last third of the flood than in the second, or if the books do not add up.
"""

import argparse
import sys
import threading
import time

import redis
from machine import (
    KEYS,
    Job,
    PeakMemory,
    Server,
    end_on_signals,
    running_job,
    running_server,
    wait_for_books,
)
from soak import report_memory

from deploy.loadtest.system.machine import describe_machine
from deploy.loadtest.system.usage import usage_of
from deploy.local.process_tree import Named, job_family, members
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_positions import FIELD, stream_key
from throttle.contract.dead_letter import LETTERS_PER_BATCH
from throttle.settings import ThrottleSettings

DEFAULTS = ThrottleSettings.model_construct()
OUTAGE_S = 30 * DEFAULTS.window_ms / 1_000
STEP_S = 0.05


class Flood:
    """Appends the same refused trade at a rate, as far as this machine can."""

    def __init__(self, url: str, rate: int, payload: bytes) -> None:
        self.sent = 0
        self._url = url
        self._share = max(1, round(rate * STEP_S / DEFAULTS.partitions))
        self._payload = payload
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End, with all that was sent acknowledged."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due_s = time.monotonic()
        with redis.Redis.from_url(self._url) as client:
            while not self._stop.is_set():
                with client.pipeline(transaction=False) as pipe:
                    for partition in range(DEFAULTS.partitions):
                        key = stream_key(KEYS.namespace, partition)
                        for _ in range(self._share):
                            pipe.xadd(key, {FIELD: self._payload})
                    self.sent += len(pipe.execute())
                due_s = max(due_s + STEP_S, time.monotonic())
                time.sleep(max(0.0, due_s - time.monotonic()))


def family(server: Server, job: Job) -> list[Named]:
    """Return the processes of the server and the job."""
    return [*members("server", server.pid), *job_family("throttle", job.group)]


def main() -> None:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="after the outage")
    parser.add_argument("--rate", type=int, default=50_000, help="trades per second")
    parser.add_argument("--bytes", type=int, default=200, help="of each trade")
    chosen = parser.parse_args()
    end_on_signals()
    with running_server() as server:
        open_log(server.client, KEYS.namespace, DEFAULTS.partitions)
        flood = Flood(server.url, chosen.rate, b"<" * chosen.bytes)
        flood.start()
        time.sleep(OUTAGE_S)
        behind = flood.sent
        with running_job(server, TICKTHROTTLE_TRADE_LOG_RETENTION_S="0") as job:
            outage = PeakMemory(server, job)
            now_ms = time.time_ns() // 1_000_000
            wait_for_books(server, job, now_ms, 600, outage.note)
            with usage_of(lambda: family(server, job), list) as usage:
                began_s, before = time.time(), flood.sent
                time.sleep(60 * chosen.minutes)
                rate = (flood.sent - before) / (time.time() - began_s)
            flood.stop()
            last_ms = time.time_ns() // 1_000_000
            ledger = wait_for_books(server, job, last_ms, within_s=120)
            used = sum(
                server.client.memory_usage(f"{KEYS.dead('throttle')}:{p}", samples=0)
                for p in range(DEFAULTS.partitions)
            )
    peaks = ", ".join(
        f"{kind} {size / 2**20:.0f}" for kind, size in outage.most.items()
    )
    print(
        f"\n{chosen.minutes:g} minutes of {rate:,.0f} refused trades/s of "
        f"{chosen.bytes:,} bytes, after an outage of {behind:,}\n\n"
        f"Peaks while catching up, MiB: {peaks}"
    )
    problems = [f"the books do not balance: {words}" for words in ledger.problems()]
    seconds = range(int(began_s), int(began_s + 60 * chosen.minutes))
    problems += report_memory(usage.processes([second * 1e3 for second in seconds]))
    books = ledger.total
    if not books.read == sum(books.refused.values()) == flood.sent:
        problems.append(f"{flood.sent} were sent, {books.read} read, {books.refused}")
    letters = sum(books.refused.values()) - books.unkept
    if letters > ledger.batches * DEFAULTS.partitions * LETTERS_PER_BATCH:
        problems.append(f"{letters} letters were kept in {ledger.batches} batches")
    print(
        f"\n{books.read:,} refused, {books.unkept:,} of them without a letter; the "
        f"letters left use {used / 2**20:.1f} MiB of Redis"
    )
    print(f"\nMachine: {describe_machine()}")
    for problem in problems:
        print(f"Not as it must be: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
