"""One process stores into a folder, and one that is frozen holds up nobody."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from archive.parquet import folder_lock
from archive.parquet.folder_lock import FolderLock, FolderLocked, FolderLost
from tests.conftest import eventually


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[FolderLock]:
    lock = FolderLock(tmp_path / "archive")
    lock.take()
    yield lock
    lock.give_back()


def test_only_one_may_store(lock: FolderLock, tmp_path: Path) -> None:
    """The next one as soon as the first has given it back."""
    other = FolderLock(tmp_path / "archive")
    with pytest.raises(FolderLocked, match="another process has it"):
        other.take()
    lock.check()
    token = lock.token
    lock.give_back()
    assert not lock.is_taken
    other.take()
    assert other.token != token
    other.give_back()


def test_whoever_touches_its_lock_keeps_it(
    lock: FolderLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "FROZEN_S", 2.5)
    other = FolderLock(tmp_path / "archive")
    path = tmp_path / "archive" / ".lock"
    seen = set()

    def is_touched() -> bool:
        with pytest.raises(FolderLocked):
            other.take()
        seen.add(path.stat().st_mtime_ns)
        return len(seen) >= 4

    eventually(is_touched, 20)


def test_a_lock_that_nobody_touches_is_taken(
    lock: FolderLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder is told when it goes on."""
    monkeypatch.setattr(folder_lock, "FROZEN_S", 0.3)
    monkeypatch.setattr(os, "utime", lambda _: None)
    other = FolderLock(tmp_path / "archive")

    def take() -> bool:
        try:
            other.take()
        except FolderLocked:
            return False
        return True

    eventually(take, 20)
    other.check()
    with pytest.raises(FolderLost, match="another process has taken it over"):
        lock.check()
    # It waits for the new holder as anybody would.
    with pytest.raises(FolderLocked):
        lock.take()
    other.give_back()
    lock.take()
