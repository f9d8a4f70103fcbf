"""An archive that runs beside a test, and what it has stored, read by other means."""

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
import redis

from archive.archive_process import run_archive
from archive.contract.archive_state import ArchiveState, decode_archives
from archive.settings import ArchiveSettings
from ingest.redis_keys import OtherKeys
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row

ISINS = make_isins(6)
OFTEN_S = 0.1
"""How long an archive of a test collects."""


def settings_of(redis_url: str, folder: Path, **changes: Any) -> ArchiveSettings:
    values = {"archive_dir": folder, "redis_url": redis_url}
    return ArchiveSettings(**(values | changes))


@contextmanager
def archiving(
    settings: ArchiveSettings, at_step: Callable[[str], None] = lambda _: None
) -> Iterator[list[BaseException]]:
    """Run an archive in a thread; yield what it ends with, if it does."""
    stop = threading.Event()
    ends: list[BaseException] = []

    def run() -> None:
        try:
            run_archive(settings, stop, at_step, OFTEN_S)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            ends.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ends
    finally:
        stop.set()
        thread.join()


def publish(publisher: Publisher, windows: int, rows: int = 3) -> None:
    """Publish so many windows, each with news of the first instruments."""
    for _ in range(windows):
        seq = publisher.offset + 1
        publisher.publish(
            *(make_row(isin, f"{seq}.50", seq, 2) for isin in ISINS[:rows])
        )


def state_of(client: redis.Redis, name: str = "parquet") -> ArchiveState | None:
    return decode_archives(client.hgetall(OtherKeys("tt").archives)).get(name)


def wait_until_stored(
    client: redis.Redis, offset: int, name: str = "parquet"
) -> ArchiveState:
    """Wait until an archive says that it has stored a window; return what it says."""

    def look() -> ArchiveState | None:
        state = state_of(client, name)
        return state if state is not None and state.offset >= offset else None

    state = eventually(look, 20)
    assert state is not None
    return state


def stored_rows(folder: Path, kind: str = "rows") -> list[dict[str, Any]]:
    """Return what the files hold, as DuckDB finds it; nothing if there is no file.

    It opens one file after the other: where a merge has taken one away, it looks again.
    """

    def look() -> list[list[dict[str, Any]]]:
        try:
            return [_rows_in_files(folder, kind)]
        except duckdb.IOException:
            return []

    return eventually(look)[0]


def _rows_in_files(folder: Path, kind: str) -> list[dict[str, Any]]:
    if not any(folder.glob(f"day=*/*/{kind}.parquet")):
        return []
    files = f"{folder}/day=*/*/{kind}.parquet"
    query = f"SELECT * FROM read_parquet('{files}') ORDER BY epoch, \"offset\""
    with duckdb.connect() as database:
        lines: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
    return lines


def stored_windows(folder: Path) -> Counter[tuple[str, int]]:
    """Return how often each window is stored, by epoch and offset."""
    lines = stored_rows(folder, "windows")
    return Counter((line["epoch"], line["offset"]) for line in lines)


def stored_keys(folder: Path) -> Counter[tuple[str, int, str]]:
    """Return how often each row is stored, by epoch, offset and ISIN."""
    lines = stored_rows(folder)
    return Counter((line["epoch"], line["offset"], line["isin"]) for line in lines)


@contextmanager
def archive_process(
    settings: ArchiveSettings,
    crash_at: str = "",
    crash_after: int = 1,
    signal_number: int = signal.SIGKILL,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run an archive as a process; with ``crash_at`` it kills itself at that step.

    Or sends itself another signal.
    """
    command = [
        *(sys.executable, "-m", "tests.archive.crash_at"),
        *(crash_at, str(crash_after), settings.model_dump_json()),
        str(int(signal_number)),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        process.communicate()


class Crash(BaseException):
    """Ends an archive where it is: nothing handles it."""


def crash(settings: ArchiveSettings, step: str, *, is_killed: bool) -> None:
    """Run an archive until it has done a step, and no further.

    One that ``is_killed`` is a process that kills itself; it takes seconds to start.
    """
    if is_killed:
        with archive_process(settings, crash_at=step) as process:
            assert process.wait(120) == -signal.SIGKILL
        return

    def at_step(name: str) -> None:
        if name == step:
            raise Crash

    with pytest.raises(Crash):
        run_archive(settings, threading.Event(), at_step, OFTEN_S)


def be_killed(
    settings: ArchiveSettings,
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    *,
    is_killed: bool,
) -> None:
    """Publish; have an archive end at a step, and another one go on (``crash``)."""
    publish(publisher, 2)
    crash(settings, step, is_killed=is_killed)
    client.delete(f"tt:lease:archive:{settings.name}")
    publish(publisher, 2)
    with archiving(settings):
        wait_until_stored(client, publisher.offset, settings.name)


def be_frozen(
    settings: ArchiveSettings, step: str, client: redis.Redis, publisher: Publisher
) -> None:
    """Publish; freeze an archive at a step, have another one go on, and wake it.

    It holds up nobody, and ends.
    """
    publish(publisher, 2)
    frozen = archive_process(settings, step, signal_number=signal.SIGSTOP)
    with frozen as first:
        eventually(lambda: is_asleep(first.pid), 30)
        client.delete(f"tt:lease:archive:{settings.name}")
        with archiving(settings) as ends:
            publish(publisher, 2)
            wait_until_stored(client, publisher.offset, settings.name)
            first.send_signal(signal.SIGCONT)
            assert first.wait(60) != 0
            assert ends == []


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
