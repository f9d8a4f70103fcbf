"""The product's own processes, started and ended by tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.conftest import eventually


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
        return next(child.pid for child in children if child.name() == "java")

    def kill_driver(self) -> None:
        """SIGKILL the Python driver; wait until its JVM has gone too."""
        java = self.java_pid()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        eventually(lambda: not psutil.pid_exists(java), 20)


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    """Run ``tickthrottle <arguments>``; end it and all its children afterwards."""
    log_file = folder / f"{arguments[0]}-{len(list(folder.iterdir()))}.log"
    with log_file.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy", *arguments],
            env={**os.environ, **environment},
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
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=15)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
