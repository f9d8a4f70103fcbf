"""A part as a child process."""

import sys
from pathlib import Path
from typing import Any

from cli.local.child import ChildProcess
from tests.conftest import eventually


def make_child(code: str, folder: Path, events: list[Any]) -> ChildProcess:
    command = [sys.executable, "-u", "-c", code]
    return ChildProcess(
        "part", command, {}, folder / "part.log", lambda *event: events.append(event)
    )


def test_its_output_is_kept_and_its_events_are_told(tmp_path: Path) -> None:
    """JSON lines with an event are handed on; everything is in the file."""
    lines = ['{"event": "ready", "n": 1}', '{"no": "event"}', "{broken", "words"]
    events: list[Any] = []
    part = make_child("\n".join(f"print({line!r})" for line in lines), tmp_path, events)
    eventually(lambda: part.exit_code() == 0, 10)
    assert part.last_lines(10) == lines
    assert part.last_lines(1) == ["words"]
    assert events == [("part", {"event": "ready", "n": 1})]


def test_a_part_is_asked_to_end_and_then_killed_with_its_children(
    tmp_path: Path,
) -> None:
    """SIGTERM goes to the part alone, SIGKILL to its whole group."""
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('asked'))\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('up')\n"
        "while True: time.sleep(0.05)\n"
    )
    part = make_child(code, tmp_path, [])
    eventually(lambda: part.last_lines(1) == ["up"], 10)
    part.terminate()
    eventually(lambda: part.last_lines(1) == ["asked"], 10)
    assert part.exit_code() is None
    assert not part.has_ended()
    part.kill()
    assert part.exit_code() == -9
    eventually(part.has_ended, 10)
    part.terminate()
