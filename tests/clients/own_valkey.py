"""A server for one test alone, that may be frozen, killed and started again."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Self

import psutil
import redis

from cli.local.valkey import valkey_command, wait_for_server
from tests.ports import free_port


class OwnValkey:
    """Keeps on disk what it has answered, so a kill loses nothing acknowledged."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}"
        self._keeping = ("--appendonly", "yes", "--appendfsync", "no")
        self._command = valkey_command(port, folder)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [*self._command, *self._keeping], stdout=subprocess.DEVNULL
        )
        assert wait_for_server(self.url, within_s=30) is not None

    def kill(self) -> None:
        """End it as ``kill -9`` does; nothing if it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """Have it stand still: connections stay open, nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        while psutil.Process(self._process.pid).status() != psutil.STATUS_STOPPED:
            os.sched_yield()

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)
