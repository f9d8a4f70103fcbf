"""The engines, and each as a running process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from fill import Log
from machine import KEYS, Program, Server, read_batches, starting_job
from throughput import start_ms

from bench.peers.maven import class_path, java
from bench.peers.messages import Message, Received, read_ours, read_peer

HEAP_MB = 512
"""Of every Java; the job's own default."""

CHANNELS = (KEYS.updates, "peers:windows")
READY_WITHIN_S = 300
_KEEPS_EVERY_WINDOW = {"TICKTHROTTLE_WINDOW_LOG": "100000"}


@dataclass(frozen=True, slots=True)
class Peer:
    """A program in Java: its folder, its class and how many threads it works with."""

    folder: str
    main: str
    threads: int
    is_whole: bool = False
    """Whether a window is one message, not one for each partition."""

    def command(self, server: Server, log: Log) -> list[str]:
        return [
            *(str(java()), f"-Xmx{HEAP_MB}m", f"-Djava.io.tmpdir={server.folder}"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", class_path(self.folder), f"peers.{self.main}"),
            *(log.address, log.topic, str(server.port), str(self.threads)),
        ]


OURS = "tickthrottle"
PEERS = {
    "streams-1": Peer("kafka-streams", "EmitOnClose", 1),
    "streams-2": Peer("kafka-streams", "EmitOnClose", 2),
    "punctuator-1": Peer("kafka-streams", "AlignedPunctuator", 1),
    "punctuator-2": Peer("kafka-streams", "AlignedPunctuator", 2),
    "flink-1": Peer("flink", "FlinkWindows", 1, is_whole=True),
    "flink-2": Peer("flink", "FlinkWindows", 2, is_whole=True),
}
ENGINES = (OURS, *PEERS)


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that was started.

    ``parts`` is the number of messages that make a window. ``rows`` returns every
    window that was published, given what a subscriber has received. ``began_ms`` is
    when it worked on the first record; ask a while after a window was there.
    """

    program: Program
    parts: int
    rows: Callable[[Sequence[Received]], Sequence[Message]]
    began_ms: Callable[[], float]

    def wait_until_ready(self) -> None:
        """Wait until it takes trades. Raises SystemExit if it does not."""
        self.program.wait_for("ready", READY_WITHIN_S)

    def late(self) -> int:
        """Return how many trades it says are lost for being late; ask at its end."""
        return sum(e["late"] for e in self.program.events if e["event"] == "ended")


@contextmanager
def running(name: str, server: Server, log: Log) -> Iterator[Running]:
    """Start an engine at the oldest entry of a topic; end it with the block."""
    if name == OURS:
        with starting_job(server, **log.settings, **_KEEPS_EVERY_WINDOW) as job:
            yield Running(
                job,
                parts=1,
                # What comes after an outage is one message, but each window is kept.
                rows=lambda _: _window_log(server),
                began_ms=lambda: start_ms(read_batches(job.events)[0]),
            )
        return
    peer = PEERS[name]
    program = Program(name, peer.command(server, log), server.folder, {})
    try:
        yield Running(
            program,
            parts=1 if peer.is_whole else log.partitions,
            rows=lambda received: [read_peer(one.data) for one in received],
            began_ms=lambda: _first_record_ms(program.events),
        )
    finally:
        program.end()
        # This also waits until its last line was read.
        program.last_lines(1)


def _window_log(server: Server) -> list[Message]:
    entries = cast(
        "list[tuple[bytes, dict[bytes, bytes]]]", server.client.xrange(KEYS.windows)
    )
    return [read_ours(fields[b"snapshot"]) for _, fields in entries]


def _first_record_ms(events: Sequence[dict[str, Any]]) -> float:
    return next(float(e["at_ms"]) for e in events if e["event"] == "first_record")
