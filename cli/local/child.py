"""One part of the pipeline as a child process with a log file."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from cli.local.guardian import is_alive

EventHandler = Callable[[str, dict[str, Any]], None]


class ChildProcess:
    """A child in a process group of its own; its output goes to a file, line by line.

    Lines that are JSON objects with an ``event`` are also handed to ``on_event``.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: dict[str, str],
        log_file: Path,
        on_event: EventHandler,
    ) -> None:
        self.name = name
        self.log_file = log_file
        self.started = time.monotonic()
        self._on_event = on_event
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.group = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask the process, not its children, to end."""
        with suppress(OSError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process and all its children at once, and wait until it is gone."""
        with suppress(OSError):
            os.killpg(self.group, signal.SIGKILL)
        self._process.wait()

    def has_ended(self) -> bool:
        """Tell whether the process and every process of its group are gone."""
        return self._process.poll() is not None and not is_alive(self.group)

    def last_lines(self, count: int) -> list[str]:
        self._reader.join(timeout=1)
        with suppress(OSError):
            return self.log_file.read_text("utf-8", "replace").splitlines()[-count:]
        return []

    def _read(self) -> None:
        output = self._process.stdout
        if output is None:
            return
        with output, self.log_file.open("ab", buffering=0) as file:
            for line in output:
                file.write(line)
                self._handle(line)

    def _handle(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            return
        with suppress(orjson.JSONDecodeError):
            fields = orjson.loads(line)
            if isinstance(fields, dict) and "event" in fields:
                self._on_event(self.name, fields)
