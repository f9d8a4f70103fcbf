"""The archive stores every window once, joined, whatever happens to it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
import redis

from archive.contract.archive_gap import find_gaps
from archive.contract.packed_window import unpack_window
from archive.contract.segment import Segment
from archive.parquet import folder_lock
from archive.parquet.segment_folder import all_segments
from ingest.redis_keys import Keys
from tests.archive.rig import (
    ISINS,
    archive_process,
    archiving,
    crash,
    is_asleep,
    publish,
    settings_of,
    state_of,
    stored_keys,
    stored_rows,
    stored_windows,
    wait_until_stored,
)
from tests.conftest import eventually, leave_out
from tests.gateway.publisher import Publisher, load_instruments
from tests.gateway.samples import EPOCH, HYNIX, SAMSUNG, make_row
from tests.published import read_snapshots

pytestmark = pytest.mark.redis


def segments_of(folder: Path) -> list[Segment]:
    return [segment for segment, _ in all_segments(folder)]


def check_whole(client: redis.Redis, folder: Path) -> None:
    """Hold what is stored to the window log: each window and row once."""
    published = {s.offset: s for s in read_snapshots(client)}
    windows = stored_rows(folder, "windows")
    assert [line["offset"] for line in windows] == sorted(published)
    for line in windows:
        assert unpack_window(line["packed"]) == published[line["offset"]].encode()
        assert line["rows"] == len(published[line["offset"]].rows)
    wanted = {
        (s.epoch, s.offset, row.isin): 1 for s in published.values() for row in s.rows
    }
    assert stored_keys(folder) == wanted


def test_every_window_is_stored_with_its_rows(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Byte for byte, with the prices as decimals and as text."""
    publish(publisher, 3)
    publisher.publish()
    publisher.publish(make_row(ISINS[0], "0.30", 9, 7))
    with archiving(settings_of(redis_url, tmp_path)):
        state = wait_until_stored(client, 5)
    check_whole(client, tmp_path)
    last = stored_rows(tmp_path)[-1]
    assert (last["price"], last["price_text"]) == (Decimal("0.30"), "0.30")
    assert (last["trades"], last["seq"], last["fields"]) == (7, 9, None)
    assert (state.windows, state.rows, state.gaps) == (5, 10, 0)
    assert state_of(client).is_stopped


def test_a_length_of_windows_that_nobody_says_is_waited_for(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """As while Redis is restored; operators are told, and nothing is made up."""
    publish(publisher, 2)
    meta = Keys("tt").meta
    client.hdel(meta, "window_ms")

    def problem() -> str | None:
        state = state_of(client)
        return None if state is None else state.problem

    with archiving(settings_of(redis_url, tmp_path)):
        eventually(lambda: "window_ms" in (problem() or ""), 20)
        assert segments_of(tmp_path) == []
        client.hset(meta, "window_ms", 500)
        wait_until_stored(client, 2)
    lengths = {line["window_ms"] for line in stored_rows(tmp_path, "windows")}
    assert lengths == {500}


def test_a_row_has_the_master_row_of_its_moment(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """A name that changes later changes nothing; what is not listed is counted."""
    seconds, _ = client.time()
    client.hset(Keys("tt").meta, "window_ms", 1_000)
    header = "isin,code,name,prev_close\n"

    def now_ms() -> int:
        now_s, now_us = client.time()
        return now_s * 1_000 + now_us // 1_000

    def publish_now() -> None:
        """Publish a window whose millisecond no change of the table shares."""
        publisher.offset += 1
        now_s, now_us = client.time()
        row = make_row(SAMSUNG, "7", publisher.offset).encode()
        other = make_row(HYNIX, "8", publisher.offset).encode()
        header = (
            f'{{"epoch":"{EPOCH}","offset":{publisher.offset},"window":'
            f'{(seconds + publisher.offset) * 1000},"windows":1,"published":'
            f"{now_s * 1_000_000 + now_us}}}"
        ).encode()
        message = b"\n".join([header, row, other])
        client.xadd(Keys("tt").windows, {"snapshot": message}, f"{publisher.offset}-0")
        published_ms = now_s * 1_000 + now_us // 1_000
        eventually(lambda: now_ms() > published_ms)

    publish_now()
    load_instruments(client, f"{header}{SAMSUNG},005930,Before,0.10\n")
    publish_now()
    load_instruments(client, f"{header}{SAMSUNG},005930,After,199400\n")
    publish_now()
    with archiving(settings_of(redis_url, tmp_path)):
        state = wait_until_stored(client, 3)
    rows = [line for line in stored_rows(tmp_path) if line["isin"] == SAMSUNG]
    assert [line["name"] for line in rows] == [None, "Before", "After"]
    assert [line["listed"] for line in rows] == [False, True, True]
    assert rows[1]["prev_close"] == Decimal("0.10")
    assert state.unknown_instrument == 4
    assert set(state.unknown) == {SAMSUNG, HYNIX}


def test_a_version_in_the_header_is_the_one_that_counts(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    client.hset(Keys("tt").meta, "window_ms", 1_000)
    versions = []
    for name in ("Before", "After"):
        load_instruments(client, f"isin,name\n{SAMSUNG},{name}\n")
        entry = client.xrevrange("tt:instruments", count=1)[0][0]
        ms, number = map(int, entry.split(b"-"))
        versions.append(ms << 21 | number)
    for offset, version in enumerate(reversed(versions), 1):
        header = (
            f'{{"epoch":"{EPOCH}","offset":{offset},"window":{offset}000,"windows":1,'
            f'"published":1,"instruments":{version}}}'
        ).encode()
        message = b"\n".join([header, make_row(SAMSUNG, "7", offset).encode()])
        client.xadd(Keys("tt").windows, {"snapshot": message}, f"{offset}-0")
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, 2)
    assert [line["name"] for line in stored_rows(tmp_path)] == ["After", "Before"]


def test_segments_are_merged_and_stay_exact(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    with archiving(settings_of(redis_url, tmp_path)):
        for _ in range(9):
            publish(publisher, 3)
            wait_until_stored(client, publisher.offset)
            assert set(stored_windows(tmp_path).values()) == {1}
        eventually(lambda: len(segments_of(tmp_path)) < 6)
    check_whole(client, tmp_path)


def test_a_trimmed_log_leaves_a_gap_with_a_name(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """What came before and after it is stored."""
    settings = settings_of(redis_url, tmp_path)
    publish(publisher, 3)
    with archiving(settings):
        wait_until_stored(client, 3)
    publish(publisher, 5)
    client.xtrim(Keys("tt").windows, minid="7-0", approximate=False)
    with archiving(settings):
        state = wait_until_stored(client, 8)
    assert (state.gaps, state.missing_windows) == (1, 3)
    [gap] = find_gaps(segments_of(tmp_path))
    assert (gap.kind, gap.windows) == ("trimmed", 3)
    assert state.last_gap == gap.text
    offsets = [line["offset"] for line in stored_rows(tmp_path, "windows")]
    assert offsets == [1, 2, 3, 7, 8]


def test_an_epoch_that_changes_goes_on(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """After a restart of the server offsets go on under another name."""
    with archiving(settings_of(redis_url, tmp_path)):
        publish(publisher, 3)
        wait_until_stored(client, 3)
        publisher.epoch = "next"
        publish(publisher, 2)
        state = wait_until_stored(client, 5)
    assert (state.epoch, state.gaps) == ("next", 0)
    check_whole(client, tmp_path)


def test_a_stream_that_was_taken_back_is_stored_again(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Redis came back older: both tellings are kept, and the place has a name."""
    settings = settings_of(redis_url, tmp_path)
    with archiving(settings):
        publish(publisher, 5)
        wait_until_stored(client, 5)
        kept = client.xrange(Keys("tt").windows, "-", "3-0")
        with client.pipeline(transaction=True) as pipe:
            pipe.delete(Keys("tt").windows)
            for entry_id, fields in kept:
                pipe.xadd(Keys("tt").windows, fields, entry_id)
            pipe.execute()
        publisher.offset, publisher.epoch = 3, "later"
        publish(publisher, 4)
        eventually(lambda: state_of(client).offset == 7, 20)
    windows = stored_windows(tmp_path)
    assert set(windows.values()) == {1}
    assert sorted(windows) == [
        *((EPOCH, offset) for offset in range(1, 6)),
        *(("later", offset) for offset in range(4, 8)),
    ]
    [gap] = find_gaps(segments_of(tmp_path))
    assert (gap.kind, gap.windows) == ("taken_back", 2)


def test_an_emptied_server_begins_anew(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Offsets begin at 1 again, under another epoch."""
    settings = settings_of(redis_url, tmp_path)
    with archiving(settings):
        publish(Publisher(client), 4)
        wait_until_stored(client, 4)
        client.delete(Keys("tt").windows)
        publish(Publisher(client, epoch="anew"), 2)
        eventually(lambda: state_of(client).epoch == "anew", 20)
    assert len(stored_windows(tmp_path)) == 6
    [gap] = find_gaps(segments_of(tmp_path))
    assert (gap.kind, gap.windows) == ("epoch", None)


STEPS = ("read", "written", "synced", "visible", "stored", "told")
MERGING = ("merged", "linked", "switched", "cleaned")
LEASE = "tt:lease:archive:parquet"
"""Runs out by itself, five seconds after a crash."""
KILLED = ("synced", "visible", "linked", "switched")


@pytest.mark.parametrize("step", [*STEPS, *MERGING])
def test_a_crash_at_any_step_leaves_no_half_file_and_no_double_row(
    step: str, client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Nor does whoever reads before the next start find any."""
    settings = settings_of(redis_url, tmp_path)
    if step in MERGING:
        # Three segments of one size; the fourth starts the merge.
        for _ in range(3):
            publish(publisher, 2)
            with archiving(settings):
                wait_until_stored(client, publisher.offset)
    publish(publisher, 2)
    before = stored_keys(tmp_path)
    crash(settings, step, is_killed=step in KILLED)
    client.delete(LEASE)
    found = stored_keys(tmp_path)
    assert set(found.values()) <= {1}
    assert before <= found
    publish(publisher, 2)
    with archiving(settings):
        wait_until_stored(client, publisher.offset)
    check_whole(client, tmp_path)
    assert not list(tmp_path.glob(".parts*"))


def test_of_two_archives_one_waits(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """And goes on when the other one is gone, however it went."""
    settings = settings_of(redis_url, tmp_path)
    publish(publisher, 2)
    with archive_process(settings) as first:
        wait_until_stored(client, 2)
        owner = state_of(client).owner
        with archiving(settings) as ends:
            publish(publisher, 2)
            wait_until_stored(client, 4)
            assert state_of(client).owner == owner
            os.kill(first.pid, signal.SIGKILL)
            publish(publisher, 2)
            wait_until_stored(client, 6)
            assert state_of(client).owner != owner
            assert ends == []
    check_whole(client, tmp_path)


@pytest.mark.parametrize("step", ["told", "synced", "linked"])
def test_a_frozen_archive_holds_up_nobody_and_changes_nothing_later(
    step: str,
    client: redis.Redis,
    publisher: Publisher,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next one stores while it sleeps in the middle of a step; it ends then."""
    monkeypatch.setattr(folder_lock, "FROZEN_S", 1.5)
    settings = settings_of(redis_url, tmp_path)
    for _ in range(3):
        publish(publisher, 2)
        with archiving(settings):
            wait_until_stored(client, publisher.offset)
    publish(publisher, 2)
    with archive_process(settings, step, signal_number=signal.SIGSTOP) as first:
        eventually(lambda: is_asleep(first.pid), 30)
        client.delete(LEASE)
        with archiving(settings) as ends:
            publish(publisher, 2)
            state = wait_until_stored(client, publisher.offset)
            first.send_signal(signal.SIGCONT)
            assert first.wait(60) != 0
            assert state_of(client).owner == state.owner
            publish(publisher, 2)
            wait_until_stored(client, publisher.offset)
            assert ends == []
    check_whole(client, tmp_path)
    assert not list(tmp_path.glob(".parts*"))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tiny", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        leave_out("a small disk, which only root may mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while filler.write(b"x" * 4_096):
            pass


def test_a_full_disk_is_waited_for(
    client: redis.Redis, publisher: Publisher, redis_url: str, tiny_disk: Path
) -> None:
    """It is named, and nothing is half there; with room again it goes on."""
    folder = tiny_disk / "archive"
    filler = tiny_disk / "filler"
    publish(publisher, 3)
    with archiving(settings_of(redis_url, folder)) as ends:
        wait_until_stored(client, 3)
        fill(filler)
        publish(publisher, 3)
        problem = eventually(lambda: state_of(client).problem, 20)
        assert "No space left" in problem
        assert len(stored_windows(folder)) == 3
        filler.unlink()
        wait_until_stored(client, 6)
        assert ends == []
    check_whole(client, folder)


def test_the_oldest_go_when_there_are_too_many_bytes(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Whole days first, then the oldest segments of the only one."""
    settings = settings_of(redis_url, tmp_path)
    small = settings.model_copy(update={"archive_bytes": 1})
    with archiving(small):
        for _ in range(4):
            publish(publisher, 3)
            wait_until_stored(client, publisher.offset)
        eventually(lambda: len(segments_of(tmp_path)) == 1)
    kept = segments_of(tmp_path)
    assert kept[0].last == publisher.offset
    [gap] = find_gaps(kept)
    assert gap.kind == "before"


def test_redis_may_go_away(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    with archiving(settings_of(redis_url, tmp_path)) as ends:
        publish(publisher, 2)
        wait_until_stored(client, 2)
        client.client_kill_filter(skipme=True)
        publish(publisher, 2)
        wait_until_stored(client, 4)
        assert ends == []
    check_whole(client, tmp_path)
