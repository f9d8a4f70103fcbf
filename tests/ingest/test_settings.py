"""Settings of every process: where a user without a home has what others have there."""

import pwd
from pathlib import Path

import pytest

from archive.settings import ArchiveSettings
from ingest.settings import home_folder
from throttle.settings import ThrottleSettings


def test_a_user_without_a_home_can_start_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one of systemd's that exists only while a unit runs: no entry, no HOME."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert home_folder() == Path("/")
    assert ThrottleSettings().state_dir == Path("/.local/state/tickthrottle")
    assert ArchiveSettings().archive_dir == Path("/.local/state/tickthrottle/archive")


def test_others_have_it_in_their_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wherever that is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ThrottleSettings().state_dir.is_relative_to(tmp_path)
