"""The units for systemd: what systemd says of them, and what processes tell it."""

import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.command_line import app
from tests.conftest import eventually, skip_or_fail
from tests.e2e.processes import running
from tests.paths import ROOT
from tests.ports import free_port

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
PROGRAM = "/opt/tickthrottle/bin/tickthrottle"
MOST_EXPOSED = 15
"""In tenths; systemd calls up to 2.0 OK, and a unit without any rule has 9.6."""


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """The units, with a program that is there: systemd looks for it."""
    program = Path(sys.executable).with_name("tickthrottle")
    for name in UNITS:
        text = (FOLDER / name).read_text("utf-8")
        (tmp_path / name).write_text(text.replace(PROGRAM, str(program)), "utf-8")
    return [tmp_path / name for name in UNITS]


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Ask systemd; skip where there is none."""
    program = shutil.which("systemd-analyze")
    if program is None:
        skip_or_fail("there is no systemd-analyze (on Debian: apt install systemd)")
    assert program is not None
    return subprocess.run([program, *words], capture_output=True, text=True)


def test_systemd_understands_every_unit(units: list[Path]) -> None:
    """No unknown directive, no value it leaves out, no program that is missing."""
    done = analyze("verify", "--man=no", *units)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_unit_may_do_little(units: list[Path]) -> None:
    """By systemd's own measure."""
    threshold = f"--threshold={MOST_EXPOSED}"
    for unit in units:
        done = analyze("security", "--offline=true", "--no-pager", threshold, unit)
        assert done.returncode == 0, f"{unit.name}: {done.stdout[-500:]}"


def test_a_unit_starts_a_command_that_exists() -> None:
    """With options that it has; the template's is in its own environment."""
    for name in UNITS:
        text = (FOLDER / name).read_text("utf-8")
        [command] = re.findall(rf"^ExecStart={PROGRAM} (.+)$", text, re.MULTILINE)
        for variable, value in re.findall(r"^Environment=(\w+)=(.+)$", text, re.M):
            command = command.replace(f"${variable}", value)
        help_of = CliRunner().invoke(app, [*shlex.split(command), "--help"])
        assert help_of.exit_code == 0, f"{name}: {help_of.output}"


COMMANDS = {
    "gateway": ("gateway",),
    "workers": ("gateway", "--workers", "2"),
    "intake": ("intake",),
    "feed": ("simulate", "--rate", "10"),
    "archive": ("archive",),
}
"""What runs without Spark. The two jobs run in tests/packaging/test_systemd.py."""


@pytest.mark.e2e
@pytest.mark.redis
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_process_says_that_it_is_ready_and_ends_when_told(
    command: tuple[str, ...], redis_url: str, tmp_path: Path
) -> None:
    """Through the socket that systemd names; SIGTERM is answered with exit code 0."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)

        def told() -> bytes:
            assert process.process.poll() is None, process.log()[-2_000:]
            try:
                return manager.recv(100)
            except BlockingIOError:
                return b""

        port = free_port()
        with running(
            tmp_path,
            *command,
            NOTIFY_SOCKET=str(tmp_path / "notify"),
            REDIS_URL=redis_url,
            TICKTHROTTLE_PORT=str(port),
            TICKTHROTTLE_OPERATORS_PORT=str(free_port()),
            TICKTHROTTLE_INTAKE_PORT=str(port),
            TICKTHROTTLE_STATE_DIR=str(tmp_path / "state"),
            TICKTHROTTLE_ARCHIVE_DIR=str(tmp_path / "archive"),
        ) as process:
            assert eventually(told, 90) == b"READY=1"
            process.process.terminate()
            assert process.process.wait(60) == 0
