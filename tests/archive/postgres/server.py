"""A real PostgreSQL for tests, from Debian's package, run as nobody."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.conftest import eventually
from tests.ports import free_port

PASSWORD = "made-up-word"


def find_programs() -> Path | None:
    """Return the folder with the server's programs, None if there is none."""
    on_path = shutil.which("initdb")
    places = [*glob.glob("/usr/lib/postgresql/*/bin"), *([on_path] if on_path else [])]
    for place in sorted(places, reverse=True):
        folder = Path(place) if Path(place).is_dir() else Path(place).parent
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


class PostgresServer:
    """One server in a folder of its own; may be killed, stopped and started again."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        # Not below pytest's own folder, which only its owner may enter.
        self._folder = Path(tempfile.mkdtemp(prefix="tt-postgres-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to be run by root.
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(self._folder, "nobody", "nogroup")
        word = self._folder / "word"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        data = self._folder / "data"
        make = [programs / "initdb", "-D", data, "-U", "tick", "-A", "scram-sha-256"]
        options = [f"--pwfile={word}", "-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run(
            [*make, *options], check=True, capture_output=True, cwd="/", **self._as
        )

    def url(
        self,
        password: str = PASSWORD,
        database: str = "postgres",
        port: int | None = None,
    ) -> str:
        """Return the address of a database; ``port`` is that of a proxy before it."""
        port = self.port if port is None else port
        return f"postgresql://tick:{password}@127.0.0.1:{port}/{database}"

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url()) as connection:
            cursor = connection.execute(query.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def start(self) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "port": self.port,
        }
        words = [
            word for pair in options.items() for word in ("-c", "{}={}".format(*pair))
        ]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._folder / "data", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            **self._as,
        )
        eventually(self._answers, 30)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        # Each of them is the leader of a session of its own.
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True
