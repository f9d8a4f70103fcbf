"""A night, a damaged file, a place that hangs: storing goes on, and operators know."""

import os
from pathlib import Path

import pytest
import redis

from archive.contract.archive_gap import find_gaps
from archive.parquet.segment_folder import all_segments, damaged_root
from ingest.redis_keys import Keys
from tests.archive.rig import (
    archiving,
    publish,
    settings_of,
    state_of,
    stored_windows,
    wait_until_stored,
)
from tests.archive.test_archiver import check_whole
from tests.conftest import eventually
from tests.gateway.publisher import Publisher

pytestmark = pytest.mark.redis


def test_a_quiet_night_is_stored_and_merged(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """A market that is quiet for many flushes, before, between and after trades."""
    with archiving(settings_of(redis_url, tmp_path)) as ends:
        for rows in (0, 0, 0, 3, 0, 0, 0, 0, 3, 0, 0, 0):
            publish(publisher, 2, rows)
            wait_until_stored(client, publisher.offset)
        eventually(lambda: len(all_segments(tmp_path)) < 6)
        assert ends == []
        assert state_of(client).tidy_failures == 0
    check_whole(client, tmp_path)


def test_a_damaged_segment_of_today_is_stored_again(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """As long as the window log has its windows; its file is kept, and named."""
    settings = settings_of(redis_url, tmp_path)
    with archiving(settings) as ends:
        for _ in range(3):
            publish(publisher, 2)
            wait_until_stored(client, publisher.offset)
        (_, first), *_ = all_segments(tmp_path)
        rows = first / "rows.parquet"
        rows.write_bytes(b"\0" * rows.stat().st_size)
        # The fourth segment has them merged.
        publish(publisher, 2)
        state = eventually(
            lambda: (s := state_of(client)).damaged_segments == 1 and s, 20
        )
        eventually(lambda: set(stored_keys_or_none(tmp_path)) == {*range(1, 9)}, 20)
        assert ends == []
    [aside] = damaged_root(tmp_path).glob("day=*/*")
    assert state.damaged == (str(aside),)
    assert state.problem is None
    assert (aside / "rows.parquet").read_bytes().strip(b"\0") == b""
    check_whole(client, tmp_path)
    assert find_gaps(s for s, _ in all_segments(tmp_path)) == []


def stored_keys_or_none(folder: Path) -> list[int]:
    """Return the offsets that can be read, none while a file cannot be."""
    try:
        return [offset for _, offset in stored_windows(folder)]
    except Exception:  # noqa: BLE001 - DuckDB says it in many ways
        return []


def test_what_left_the_log_is_a_gap_with_a_name(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """A damaged segment is found at the next start; what is left is stored once."""
    settings = settings_of(redis_url, tmp_path)
    for _ in range(3):
        publish(publisher, 2)
        with archiving(settings):
            wait_until_stored(client, publisher.offset)
    _, (_, second), *_ = all_segments(tmp_path)
    os.truncate(second / "windows.parquet", 30)
    client.xtrim(Keys("tt").windows, minid="4-0", approximate=False)
    with archiving(settings):
        eventually(lambda: 4 in stored_keys_or_none(tmp_path), 20)
        publish(publisher, 1)
        wait_until_stored(client, publisher.offset)
    assert sorted(stored_keys_or_none(tmp_path)) == [1, 2, 4, 5, 6, 7]
    assert set(stored_windows(tmp_path).values()) == {1}


def test_storing_goes_on_while_nothing_can_be_tidied(
    client: redis.Redis, publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Failures are counted, named and tried again, later each time; nothing ends."""
    settings = settings_of(redis_url, tmp_path)
    # In the way of what should be set aside.
    damaged_root(tmp_path).parent.mkdir(exist_ok=True)
    damaged_root(tmp_path).write_text("in the way")
    publish(publisher, 2)
    with archiving(settings):
        wait_until_stored(client, 2)
    [(_, first)] = all_segments(tmp_path)
    (first / "rows.parquet").write_bytes(b"")
    with archiving(settings) as ends:
        for _ in range(6):
            publish(publisher, 2)
            wait_until_stored(client, publisher.offset)
        state = eventually(lambda: (s := state_of(client)).tidy_failures >= 2 and s, 20)
        assert (state.problem, ends) == (None, [])
        assert str(damaged_root(tmp_path)) in state.tidy_problem
        damaged_root(tmp_path).unlink()
        eventually(lambda: state_of(client).damaged_segments == 1, 30)
        eventually(lambda: state_of(client).tidy_problem is None, 20)
        eventually(lambda: len(set(stored_keys_or_none(tmp_path))) == 14, 20)
    check_whole(client, tmp_path)
