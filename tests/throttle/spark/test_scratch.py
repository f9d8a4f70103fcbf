"""The folder of a process."""

import tempfile
import threading
from pathlib import Path

import pytest

from throttle.job import ThrottleFailed, run_throttle
from throttle.settings import ThrottleSettings
from throttle.spark import scratch
from throttle.spark.scratch import NoFolder, programs_root, scratch_folder


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_lasts_as_long_as_its_process_needs_it(root: Path) -> None:
    """It is there inside the block and gone after it."""
    with scratch_folder() as folder:
        (folder / "file").write_text("x")
        assert folder.parent == root
    assert list(root.iterdir()) == []


def test_what_a_killed_process_left_is_removed(root: Path) -> None:
    """Its lock went with it; other people's folders stay."""
    left = root / "tickthrottle-left"
    left.mkdir()
    (left / "lock").touch()
    foreign = root / "somebody-elses"
    foreign.mkdir()
    with scratch_folder():
        assert not left.exists()
    assert foreign.exists()


def test_a_folder_in_use_is_left_alone() -> None:
    """Two jobs on one machine do not disturb each other."""
    with scratch_folder() as first, scratch_folder() as second:
        assert first != second
        assert first.exists()


def test_checkpoints_of_killed_jobs_are_removed_too(tmp_path: Path) -> None:
    """The folder may be in a place of one's own, which need not exist yet."""
    parent = tmp_path / "state" / "checkpoints"
    with scratch_folder(parent) as first:
        assert first.parent == parent
        left = parent / "tickthrottle-left"
        left.mkdir()
        (left / "lock").touch()
        with scratch_folder(parent):
            assert not left.exists()
            assert first.exists()


def test_a_place_that_cannot_hold_it_is_named(tmp_path: Path) -> None:
    """With the variable to set; the job ends with this sentence."""
    file = tmp_path / "file"
    file.touch()
    settings = ThrottleSettings(state_dir=file / "state")
    sentence = (
        f"folder {file}/state/checkpoints: Not a directory; set "
        "TICKTHROTTLE_STATE_DIR to a folder that can be written"
    )
    with pytest.raises(ThrottleFailed, match=f"^{sentence}$"):
        run_throttle(settings, threading.Event())


def test_where_no_program_may_run_another_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first in which one may, that can be written, and whose path is short."""
    long, closed = tmp_path / ("long" * 20), tmp_path / "file"
    closed.touch()
    free, later = tmp_path / "f", tmp_path / "later"
    monkeypatch.setattr(scratch, "_MOST_PATH_BYTES", len(str(later)))
    monkeypatch.setattr(scratch, "is_noexec", lambda folder: folder == tmp_path)
    monkeypatch.setattr(
        scratch, "_others", lambda: iter([tmp_path, long, closed / "in", free, later])
    )
    assert programs_root() == free
    assert not long.exists()
    with scratch_folder() as folder:
        assert folder.parent == free


def test_where_no_folder_will_do_one_sentence_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "is_noexec", lambda _: True)
    with pytest.raises(
        NoFolder, match=rf"^folder {tmp_path}: is mounted noexec, .*TMPDIR"
    ):
        programs_root()


def test_a_socket_in_a_folder_has_a_path_that_is_not_too_long() -> None:
    """Linux allows 107 bytes, and Spark names its sockets by a UUID."""
    socket = f"/tickthrottle-12345678/.{'0' * 36}.sock"
    assert scratch._MOST_PATH_BYTES + len(socket) == 107
