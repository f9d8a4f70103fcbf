"""Play real tapes through real jobs, kill both on the way; compare all that they say.

Each tape is appended whole, with its own times, so that its bars are those of its day:
a part comes late, a part twice, some trades are taken back or corrected. The throttle
and the analytics job are killed at random moments. Afterwards oracles that read the
log are asked for every window, the books, the days so far and every bar; and the day so
far of each instrument is compared with the sum of its bars and of what was too late.
Ends with exit code 1 at the first difference.
"""

import argparse
import csv
import gzip
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple

import orjson

from ingest.redis_keys import AnalyticsKeys
from ingest.sources.event import Event
from ingest.trade import Trade
from loadtest.system.machine import describe_machine
from tests.conftest import TAPES, eventually
from tests.e2e.books import Checked, read_account
from tests.e2e.feeds import PARTITIONS, create_feed_of, disordered, take_back
from tests.e2e.logged_bars import log_entries, stored_bars
from tests.e2e.processes import Running
from tests.e2e.rig import Rig, create_rig
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.contract.cut import Cut

WINDOW_MS = 2_000
LATENESS_MS = 8 * 3_600_000
"""Shorter than a day: of long tapes the beginning comes too late for bars."""

KILLS = 4
WORK_S = 600
"""How long jobs may need for what is left when the tape is over."""

ByIsin = defaultdict[str, list[Entry]]
Start = Callable[[], AbstractContextManager[Running]]

ANALYTICS = {
    "TICKTHROTTLE_ANALYTICS": "bars",
    "TICKTHROTTLE_LATENESS_S": str(LATENESS_MS // 1_000),
    "TICKTHROTTLE_BARS_KEPT": "10000",
}


class Played(NamedTuple):
    """What was compared of a tape."""

    checked: Checked
    taken_back: int
    bars: int
    too_late: int


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tapes", nargs="*", type=Path, help="all there are, if none")
    parser.add_argument("--rate", type=int, default=15_000, help="trades a second")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same tape")
    arguments = parser.parse_args()
    tapes = arguments.tapes or sorted(TAPES.glob("*.csv.gz"))
    began_s = time.monotonic()
    for tape in tapes:
        with (
            tempfile.TemporaryDirectory(prefix="tape-") as folder,
            create_rig(Path(folder) / "rig", WINDOW_MS) as rig,
        ):
            try:
                played = play(rig, tape, arguments.rate, Random(arguments.seed))
            except AssertionError as error:
                sys.exit(f"{tape.name}: {error}\nnot as it must be")
        print(
            f"{tape.name}: {played.checked.trades:,} entries in "
            f"{played.checked.windows} windows, {played.taken_back:,} trades taken "
            f"back, {played.bars:,} bars, {played.too_late:,} trades too late for one: "
            "as they must be",
            flush=True,
        )
    minutes = (time.monotonic() - began_s) / 60
    print(f"\n{len(tapes)} tapes in {minutes:.0f} minutes, no difference")
    print(f"Machine: {describe_machine()}")


def play(rig: Rig, tape: Path, rate: int, chance: Random) -> Played:
    """Append a tape, kill both jobs on the way, compare all."""
    events = take_back(disordered(tape_events(tape, rate), chance), chance)
    with (
        Restarted(lambda: rig.job()) as throttle,
        Restarted(lambda: rig.process("analytics", **ANALYTICS)) as analytics,
        create_feed_of(rig.url, events) as feed,
    ):
        for number in range(KILLS):
            time.sleep(chance.uniform(3, 6))
            (throttle, analytics)[number % 2].kill()
        feed.wait(WORK_S)
        upto_ms = rig.clock_ms() + 1_000
        keys = AnalyticsKeys("tt")

        def is_done() -> bool:
            for job in (throttle, analytics):
                assert job.running.process.poll() is None, job.running.log()[-3_000:]
            account = read_account(rig.client)
            cut = rig.client.hget(keys.progress("bars"), "cut")
            return (
                account is not None
                and account.cut.end_ms > upto_ms
                and cut is not None
                and Cut.from_offset(orjson.loads(cut)).end_ms > upto_ms
            )

        eventually(is_done, WORK_S)
        return compare(rig, keys)


def tape_events(tape: Path, rate: int) -> Iterator[Event]:
    """Yield a tape's trades with their own times, the last a second ago."""
    with gzip.open(tape, "rt") as lines:
        last_us = max(int(row["time"]) for row in csv.DictReader(lines))
    shift_us = time.time_ns() // 1_000 - 1_000_000 - last_us
    with gzip.open(tape, "rt") as lines:
        for number, row in enumerate(csv.DictReader(lines)):
            trade = Trade.from_fields({**row, "time": int(row["time"]) + shift_us})
            yield Event(number * 1_000_000 // rate, trade.isin, trade.to_wire())


class Restarted:
    """A job that begins again after each kill. A context manager."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._stack = ExitStack()
        self.running = self._stack.enter_context(start())

    def __enter__(self) -> "Restarted":
        """Return itself; it runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the job."""
        self._stack.close()

    def kill(self) -> None:
        """SIGKILL all of it, and start it again."""
        self.running.kill()
        self._stack.close()
        self.running = self._stack.enter_context(self._start())


def compare(rig: Rig, keys: AnalyticsKeys) -> Played:
    """Compare windows, books, days and bars with the log; the feed is over."""
    checked = rig.check()
    account = read_account(rig.client)
    assert account is not None
    entries = list(log_entries(rig.client, PARTITIONS))
    rules = Rules(lateness_ms=LATENESS_MS)
    expected, too_late = bar_oracle.bars(entries, rules)
    found = dict(stored_bars(rig.client, keys))
    for place, bar in expected.items():
        assert found[place] == bar, (place, found[place], bar)
    assert found.keys() == expected.keys()
    late, final = differences(entries, rules)
    for isin, day in account.days.items():
        bars = [bar for (other, _), bar in found.items() if other == isin]
        more, less = bar_oracle.sums(late[isin]), bar_oracle.sums(final[isin])
        for name in ("trades", "volume", "value"):
            total = sum(bar[name] for bar in bars) + more[name] - less[name]
            assert Fraction(getattr(day.sums, name)) == total, (isin, name)
    taken_back = account.ledger.total.taken_back
    return Played(checked, taken_back, len(found), too_late.total())


def differences(entries: list[Entry], rules: Rules) -> tuple[ByIsin, ByIsin]:
    """Return what makes a day another one than its bars, by instrument.

    That are trades that stand and came too late for their bar, and trades that do not
    stand and were in a bar that was final by then.
    """
    late: ByIsin = defaultdict(list)
    final: ByIsin = defaultdict(list)
    by = {trade.where: of_it for trade, of_it in bar_oracle.taken_back(entries)}
    for entry in (entry for entry in entries if entry.cancels is None):
        closed_ms = bar_oracle.place_of(entry, rules)[1]
        is_late = entry.append_ms - closed_ms >= rules.lateness_ms
        taken = by.get(entry.where)
        if taken is None:
            if is_late:
                late[entry.isin].append(entry)
        elif not is_late and taken.append_ms - closed_ms >= rules.lateness_ms:
            final[entry.isin].append(entry)
    return late, final


if __name__ == "__main__":
    main()
