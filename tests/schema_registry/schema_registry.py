"""A real schema registry to test with, Apicurio, in a process of its own."""

import sys
import time
from contextlib import suppress
from pathlib import Path

from confluent_kafka.schema_registry import SchemaRegistryClient

from cli.local.child import ChildProcess
from cli.local.guardian import Guardian
from ingest.process.direct_http import open_direct
from tests.ports import free_port
from throttle.spark.java import find_java

HOME = Path(sys.prefix) / "registry"
START_WITHIN_S = 180.0
"""On two busy cores; an idle machine needs seven seconds."""

ANSWER_S = 20


class RegistryMissing(RuntimeError):
    """The registry is not installed; the message says how to get it."""


class SchemaRegistryServer:
    """A registry on loopback that may be killed and started again.

    What was registered stays, in ``folder``. It does not outlive the process that
    started it. Raises RegistryMissing where ``make kafka-jars`` has not run.
    """

    def __init__(self, folder: Path, home: Path = HOME) -> None:
        self._jar = home / "quarkus-run.jar"
        if not self._jar.is_file():
            raise RegistryMissing(f"no registry in {home}: run `make kafka-jars`")
        self._folder = folder
        self._port = free_port()
        self._process: ChildProcess | None = None
        self._guardian: Guardian | None = None

    @property
    def url(self) -> str:
        """Where clients of Confluent's interface find it."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it if it is not running, and wait until it answers.

        Raises AssertionError.
        """
        if self._process is not None:
            return
        self._folder.mkdir(exist_ok=True)
        options = {
            "java.io.tmpdir": self._folder,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._port,
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": 0,
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{self._folder}/db",
        }
        command = [str(find_java(None, self._folder).home / "bin" / "java"), "-Xmx256m"]
        # One compiler and one collector, the simple ones: ready sooner.
        command += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        command += [f"-D{name}={value}" for name, value in options.items()]
        command += ["-jar", str(self._jar)]
        log = self._folder / "registry.log"
        self._process = ChildProcess("registry", command, {}, log, lambda *_: None)
        self._guardian = Guardian()
        self._guardian.watch(self._process.group)
        until_s = time.monotonic() + START_WITHIN_S
        while not self._answers():
            if self._process.exit_code() is None and time.monotonic() < until_s:
                time.sleep(0.1)
                continue
            lines = "\n".join(self._process.last_lines(6))
            self.kill()
            raise AssertionError(f"the registry does not answer:\n{lines}")

    def client(self) -> SchemaRegistryClient:
        """Return Confluent's client of it, which asks again where no answer comes.

        An answer that the registry has logged did not arrive once.
        """
        return SchemaRegistryClient({"url": self.url, "timeout": ANSWER_S})

    def kill(self) -> None:
        """End it as a power cut does; nothing if it is not running."""
        if self._process is not None:
            self._process.kill()
        if self._guardian is not None:
            self._guardian.close()
        self._process = self._guardian = None

    def _answers(self) -> bool:
        with suppress(OSError), open_direct(f"{self.url}/subjects", 5) as answer:
            return answer.status == 200
        return False
