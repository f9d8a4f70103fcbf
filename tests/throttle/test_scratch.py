"""The folder of a process."""

import shutil
import tempfile
from pathlib import Path

import pytest

from throttle.scratch import checkpoint_folder, scratch_folder


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


def test_a_folder_that_vanished_is_no_error() -> None:
    """Cleaning up may have been done by somebody else."""
    with scratch_folder() as folder:
        shutil.rmtree(folder)


def test_a_term_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    """What Spark kept of other runs is removed, that of other jobs and logs stays."""
    kept = [
        checkpoint_folder(tmp_path, "log", "other", 1),
        checkpoint_folder(tmp_path, "other-log", "job", 1),
    ]
    # A restored server may give a term twice, so that of the same number goes too.
    older = [tmp_path / "checkpoints" / "log" / "job" / name for name in "2379"]
    for folder in (*kept, *older):
        folder.mkdir(parents=True)
        (folder / "metadata").write_text("x")
    assert checkpoint_folder(tmp_path, "log", "job", 3) == older[1]
    assert not any(folder.exists() for folder in older)
    assert all((folder / "metadata").exists() for folder in kept)
