"""The product's own processes, started and ended by tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.conftest import eventually

_TASK_DAEMON = "throttle.spark.task_daemon"


class Running:
    """A process of the product in its own group, its output in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.process = process
        self.log_file = log_file

    def log(self) -> str:
        """Return all it has written."""
        return self.log_file.read_text("utf-8", "replace")

    def wait_for(self, words: str, within_s: float = 60) -> None:
        """Wait until the words are in its output; fail if it ends before."""

        def check() -> bool:
            if words in self.log():
                return True
            assert self.process.poll() is None, self.log()[-3_000:]
            return False

        eventually(check, within_s)

    def java_pid(self) -> int:
        """Return the process id of its JVM."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(child.pid for child in children if name_of(child) == "java")

    def pids(self) -> list[int]:
        """Return every process of its session: driver, JVM and Python workers.

        Spark puts the workers into a process group of their own.
        """
        return [pid for pid in psutil.pids() if _session_of(pid) == self.process.pid]

    def kill_now(self) -> None:
        """SIGKILL driver and JVM in one call, then what is left of the session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL everything at once and wait until all of it has gone."""
        self.kill_now()
        self.process.wait()
        eventually(lambda: not self._signal(signal.SIGKILL), 20)

    def kill_workers(self) -> list[int]:
        """SIGKILL the Python workers that run tasks; return who they were.

        Spark runs their tasks again.
        """
        killed = []
        for pid in self.pids():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                command, parent = process.cmdline(), process.parent()
                is_daemon = _TASK_DAEMON in command
                if is_daemon and parent and _TASK_DAEMON in parent.cmdline():
                    process.kill()
                    killed.append(pid)
        return killed

    def suspend(self) -> None:
        """Stop every process where it is, as a machine that sleeps does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGSTOP)
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let every process go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[int]:
        pids = self.pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def kill_driver(self) -> None:
        """SIGKILL the Python driver; wait until its JVM has gone too."""
        java = self.java_pid()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        eventually(lambda: not psutil.pid_exists(java), 20)


def family_of(run: Running) -> list[psutil.Process]:
    """Return the run's process and all it has started."""
    parent = psutil.Process(run.process.pid)
    family = [parent, *parent.children(recursive=True)]
    assert {"java", "valkey-server"} <= set(map(name_of, family))
    return family


def name_of(process: psutil.Process) -> str:
    """Return its name, nothing if it has ended since it was found."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def are_gone(family: list[psutil.Process]) -> bool:
    """Tell whether none of the processes runs any more."""
    return not any(map(is_alive, family))


def last_word(process: psutil.Process) -> str:
    """Return the last word of its command line, nothing if it has ended."""
    try:
        return next(reversed(process.cmdline()), "")
    except psutil.NoSuchProcess:
        return ""


def is_alive(process: psutil.Process) -> bool:
    """Tell whether it runs; one that nobody has waited for does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# A second Spark would take its time from what a test waits for.
_WITHOUT_ANALYTICS = {"TICKTHROTTLE_ANALYTICS": "off"}


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    """Run ``tickthrottle <arguments>``; end it and all its children afterwards."""
    command = [sys.executable, "-m", "tickthrottle", *arguments]
    with running_command(folder, arguments[0], command, **environment) as process:
        yield process


@contextmanager
def running_command(
    folder: Path,
    name: str,
    command: Sequence[str | Path],
    cwd: Path | None = None,
    **environment: str,
) -> Iterator[Running]:
    """Run a command; end it and all its children afterwards."""
    log_file = folder / f"{name}-{len(list(folder.iterdir()))}.log"
    with log_file.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **_WITHOUT_ANALYTICS, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Running(process, log_file)
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(ProcessLookupError):
                # A suspended one could not end.
                os.killpg(process.pid, signal.SIGCONT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _session_of(pid: int) -> int | None:
    """Return the session of a process that runs, None for one that has ended."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        return os.getsid(pid)
    except (ProcessLookupError, psutil.Error):
        return None
