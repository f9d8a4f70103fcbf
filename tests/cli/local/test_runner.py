"""A run that cannot start says why; one that is slow says what it waits for."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.local import runner as runner_module
from cli.local.ports_and_memory import RunFailed
from cli.local.runner import Runner, run_local
from cli.local.settings import RunSettings
from tests.conftest import eventually
from tests.ports import free_port


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """In a sentence that says what to set."""
    file = tmp_path / "file"
    file.touch()
    settings = RunSettings(port=free_port(), state_dir=file / "state")
    with pytest.raises(RunFailed) as failed:
        run_local(settings, threading.Event())
    assert str(failed.value) == (
        f"state_dir {file}/state: Not a directory; set TICKTHROTTLE_STATE_DIR to a "
        "folder that can be written"
    )


LOCAL = "tests.ingest.adapters.local_feeds"


@pytest.mark.spark
def test_a_feed_and_a_tape_are_too_many(tmp_path: Path) -> None:
    tape = tmp_path / "tape"
    tape.touch()
    with pytest.raises(ValueError, match=r"feed and tape: only one"):
        RunSettings(feed="upbit", tape=tape)


class OddRunner(Runner):
    """A run whose throttle is another program."""

    program = ""

    def _command(self, name: str) -> Sequence[str]:
        if name == "throttle":
            return [sys.executable, "-u", "-c", self.program]
        return super()._command(name)


@contextmanager
def starting(folder: Path, program: str) -> Iterator[tuple[StringIO, list[str]]]:
    """Start a run in a thread; yield what it says, and then why it has ended."""
    stop, output = threading.Event(), StringIO()
    console = Console(file=output, width=300)
    settings = RunSettings(port=free_port(), state_dir=folder, analytics="off")
    runner = OddRunner(settings, folder, stop, has_feed=False, console=console)
    runner.program = program
    ends: list[str] = []

    def start() -> None:
        try:
            runner.start()
        except (RunFailed, SystemExit) as error:
            ends.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    try:
        yield output, ends
    finally:
        stop.set()
        thread.join()
        runner.stop()


@pytest.mark.redis
def test_what_a_slow_start_waits_for_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the part's own last word, and where its log is; no clock gives up."""
    monkeypatch.setattr(runner_module, "SAY_EVERY_S", 0.2)
    program = """
import time
print('{"event": "warming up", "level": "info"}')
time.sleep(600)
"""
    words = f"not ready yet: warming up; its log is {tmp_path}/logs/throttle.log"
    with starting(tmp_path, program) as (output, ends):
        eventually(lambda: words in output.getvalue(), 30)
        assert ends == []
        assert (tmp_path / "pipeline.json").exists()
    assert ends == ["0"]
    assert not (tmp_path / "pipeline.json").exists()


@pytest.mark.redis
def test_a_part_that_dies_ends_the_start(tmp_path: Path) -> None:
    program = "print('no Java here'); raise SystemExit(3)"
    with starting(tmp_path, program) as (_, ends):
        eventually(lambda: ends, 30)
    assert "the throttle ended (exit code 3)" in ends[0]
    assert "no Java here" in ends[0]


def test_a_run_keeps_an_archive_beside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gibibyte at most, unless told otherwise; or none."""
    monkeypatch.setenv("TICKTHROTTLE_ARCHIVE_BYTES", "2000000")
    port = free_port()
    for is_on in (True, False):
        folder = tmp_path / str(is_on)
        folder.mkdir()
        settings = RunSettings(port=port, state_dir=tmp_path, archive=is_on)
        runner = Runner(settings, folder, threading.Event(), has_feed=False)
        told = runner.environment.get("TICKTHROTTLE_ARCHIVE_DIR")
        assert told == (str(tmp_path / f"archive-{port}") if is_on else None)
        assert runner.environment["TICKTHROTTLE_ARCHIVE_BYTES"] == "2000000"
        runner.stop()
    monkeypatch.delenv("TICKTHROTTLE_ARCHIVE_BYTES")
    folder = tmp_path / "default"
    folder.mkdir()
    settings = RunSettings(port=port, state_dir=tmp_path)
    runner = Runner(settings, folder, threading.Event(), has_feed=False)
    assert runner.environment["TICKTHROTTLE_ARCHIVE_BYTES"] == "1073741824"
    runner.stop()


class BrokenArchive(Runner):
    """A run whose archive ends at once, again and again."""

    def _command(self, name: str) -> Sequence[str]:
        return [sys.executable, "-c", "print('no database'); raise SystemExit(3)"]


def test_a_run_goes_on_without_an_archive_that_cannot_run(tmp_path: Path) -> None:
    """Prices do not depend on it; why it was given up is said."""
    stop, output = threading.Event(), StringIO()
    console = Console(file=output, width=300)
    settings = RunSettings(port=free_port(), state_dir=tmp_path)
    runner = BrokenArchive(settings, tmp_path, stop, has_feed=False, console=console)
    runner._launch("archive")
    ends: list[RunFailed] = []

    def watch() -> None:
        try:
            runner.watch()
        except RunFailed as error:
            ends.append(error)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        eventually(lambda: "given up: the archive ended" in output.getvalue(), 30)
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join()
        runner.stop()
    assert ends == []
    assert "no database" in output.getvalue()
