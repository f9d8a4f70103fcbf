"""A real Kafka broker to test with, in a process of its own; `make kafka` runs one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cli.local.child import ChildProcess
from cli.local.guardian import Guardian
from ingest.process.ports import why_taken
from tests.kafka_broker.kraft import (
    CLUSTER_ID,
    Account,
    Ports,
    java_command,
    java_options,
    server_properties,
)
from tests.ports import free_port
from throttle.spark.java import Java, find_java

JARS = Path(sys.prefix) / "kafka"
CLASSES = JARS / "classes.aot"
"""What the bundled Java knows of the broker; it ignores a file that does not fit."""

START_WITHIN_S, STOP_WITHIN_S = 60.0, 10.0
LINES_SHOWN = 6


class BrokerMissing(RuntimeError):
    """Kafka is not installed; the message says how to get it."""


class BrokerFailed(RuntimeError):
    """The broker cannot start; the message has the end of its log."""


class Broker:
    """A broker on loopback that may be killed, frozen and started again.

    Its data, settings and log are in ``folder``. Ports and data stay the same from
    start to start. It does not outlive the process that started it, however that one
    ends. ``is_quick`` is for tests; a benchmark wants a Java that is fast, not ready
    early. Raises BrokerMissing where ``make kafka-jars`` has not run.
    """

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        sasl_port: int | None = None,
        *,
        account: Account | None = None,
        heap_mb: int = 512,
        is_quick: bool = True,
        more_java_options: Sequence[str] = (),
        jars: Path = JARS,
    ) -> None:
        if not any(jars.glob("kafka_*.jar")):
            raise BrokerMissing(f"no Kafka in {jars}: run `make kafka-jars`")
        plain = port or free_port()
        sasl = sasl_port or free_port()
        self.folder = folder
        # Of another process than the one that chose the others.
        free = iter(free_port, None)
        controller = next(port for port in free if port not in (plain, sasl))
        self._ports = Ports(plain, sasl, controller)
        self._account = account or Account("tickthrottle", "correct-horse")
        self._jars = list(jars.glob("*.jar"))
        self._options = [*java_options(heap_mb, is_quick), *more_java_options]
        self._knows_classes = is_quick and CLASSES.exists()
        self._java: Java | None = None
        self._process: ChildProcess | None = None
        self._guardian: Guardian | None = None

    @property
    def servers(self) -> str:
        """The address for clients without credentials."""
        return f"127.0.0.1:{self._ports.plain}"

    @property
    def sasl_servers(self) -> str:
        """The address for clients with credentials: SASL_PLAINTEXT, PLAIN."""
        return f"127.0.0.1:{self._ports.sasl}"

    @property
    def user(self) -> str:
        """Who may use ``sasl_servers``."""
        return self._account.user

    @property
    def password(self) -> str:
        """The user's password."""
        return self._account.password

    @property
    def log_file(self) -> Path:
        """What the broker has to say, from all its starts."""
        return self.folder / "broker.log"

    @property
    def process_group(self) -> int:
        """The running broker's process group. Raises BrokerFailed if there is none."""
        if self._process is None:
            raise BrokerFailed(f"the broker of {self.folder} is not running")
        return self._process.group

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def format(self) -> None:
        """Prepare an empty folder; one that was prepared before stays as it is."""
        (self.folder / "scratch").mkdir(parents=True, exist_ok=True)
        text = server_properties(self._ports, self._account, self._data)
        self._properties.write_text(text)
        if (self._data / "meta.properties").exists():
            return
        arguments = ("--cluster-id", CLUSTER_ID, "--config", str(self._properties))
        command = self.command("kafka.tools.StorageTool", "format", *arguments)
        done = subprocess.run(command, env={}, capture_output=True, text=True)
        if done.returncode != 0:
            end = _epitaph((done.stdout + done.stderr).splitlines())
            raise BrokerFailed(f"Kafka's storage tool failed:\n  {end}")

    def start(self) -> None:
        """Start the broker and wait until it answers. Raises BrokerFailed."""
        if self._process is not None:
            raise BrokerFailed(f"the broker on {self.servers} is running already")
        for port in (self._ports.plain, self._ports.sasl, self._ports.controller):
            # Whoever listens there would answer in our broker's place.
            if (reason := why_taken(port)) is not None:
                raise BrokerFailed(f"port {port}: {reason}")
        self.format()
        command = self.command("kafka.Kafka", str(self._properties))
        self._process = ChildProcess(
            "kafka", command, {}, self.log_file, lambda *_: None
        )
        self._guardian = Guardian()
        self._guardian.watch(self._process.group)
        try:
            self._wait(self._process)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End the broker as a power cut does; nothing if it is not running."""
        if self._process is not None:
            self._process.kill()
        self._process = None
        if self._guardian is not None:
            self._guardian.close()
        self._guardian = None

    def stop(self, within_s: float = STOP_WITHIN_S) -> int | None:
        """Ask the broker to end and wait; kill it after ``within_s``.

        Returns its exit code, None if it was not running.
        """
        part = self._process
        if part is not None:
            self.resume()
            part.terminate()
            deadline = time.monotonic() + within_s
            while not part.has_ended() and time.monotonic() < deadline:
                time.sleep(0.02)
        self.kill()
        return part.exit_code() if part is not None else None

    def pause(self) -> None:
        """Freeze the broker: connections stay open, nobody answers.

        Returns when it stands still: on a busy machine its threads go on until it has
        its turn to take the signal.
        """
        os.killpg(self.process_group, signal.SIGSTOP)
        leader = psutil.Process(self.process_group)
        while leader.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            time.sleep(0.001)

    def resume(self) -> None:
        """Let a frozen broker go on."""
        with suppress(ProcessLookupError):
            os.killpg(self.process_group, signal.SIGCONT)

    def exit_code(self) -> int | None:
        """Return how the broker ended by itself, None while it runs."""
        return None if self._process is None else self._process.exit_code()

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command that runs one of Kafka's programs as the broker runs."""
        scratch = self.folder / "scratch"
        if self._java is None:
            self._java = find_java(None, scratch)
        options = self._options
        if self._knows_classes and self._java.is_bundled:
            options = [f"-XX:AOTCache={CLASSES}", "-Xlog:aot*=off", *options]
        return java_command(
            self._java.home, options, self._jars, scratch, program, *arguments
        )

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _wait(self, broker: ChildProcess) -> None:
        deadline = time.monotonic() + START_WITHIN_S
        client = AdminClient(
            {
                "bootstrap.servers": self.servers,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 50,
                # Refused connections are no news here.
                "log_level": 0,
            }
        )
        while not _answers(client):
            code = broker.exit_code()
            if code is None and time.monotonic() < deadline:
                continue
            ended = "does not answer" if code is None else f"ended (exit code {code})"
            end = _epitaph(broker.last_lines(100))
            raise BrokerFailed(
                f"the broker {ended}; the end of {self.log_file}:\n  {end}"
            )


def _answers(client: AdminClient) -> bool:
    try:
        # A broker that is up but not yet registered answers with an empty list.
        return bool(client.list_topics(timeout=0.5).brokers)
    except KafkaException:
        return False


def _epitaph(lines: Sequence[str]) -> str:
    """Return the last lines that are not part of a Java stack trace."""
    words = [line for line in lines if line.strip() and not line.startswith("\tat ")]
    return "\n  ".join(words[-LINES_SHOWN:])
