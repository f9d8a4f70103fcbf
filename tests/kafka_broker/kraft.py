"""A Kafka broker on loopback, as words: its properties and its commands.

One node that is broker and controller (KRaft), made for tests: what takes minutes in
production (retention, compaction, a group's first members) takes a second or less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Names the data; clients never see it. 16 bytes in base64.
CLUSTER_ID = "dGlja3Rocm90dGxlLXRlcw"

# One compiler and one collector, the simple ones: ready sooner, slower under load.
_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
# As Kafka's own start script has it.
_LASTING = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
]


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a broker listens, always on 127.0.0.1."""

    plain: int
    sasl: int
    controller: int


@dataclass(frozen=True, slots=True)
class Account:
    """The one user that the listener with passwords knows."""

    user: str
    password: str


def java_options(heap_mb: int, is_quick: bool) -> list[str]:
    """Return the options of the broker's Java.

    ``is_quick`` makes it start sooner and work slower: right for tests, wrong for
    benchmarks.
    """
    return [f"-Xmx{heap_mb}m", *(_QUICK if is_quick else _LASTING)]


def java_command(
    java_home: Path,
    options: Sequence[str],
    jars: Sequence[Path],
    scratch: Path,
    program: str,
    *arguments: str,
) -> list[str]:
    """Return the command that runs one of Kafka's programs.

    What Java unpacks goes to ``scratch``, which must exist.
    """
    return [
        str(java_home / "bin" / "java"),
        *options,
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={scratch}",
        "-Djava.awt.headless=true",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
        "-cp",
        ":".join(str(jar) for jar in sorted(jars)),
        program,
        *arguments,
    ]


def server_properties(ports: Ports, account: Account, data: Path) -> str:
    """Return the broker's configuration file."""
    plain = f"PLAINTEXT://127.0.0.1:{ports.plain}"
    sasl = f"SASL_PLAINTEXT://127.0.0.1:{ports.sasl}"
    controller = f"127.0.0.1:{ports.controller}"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{plain},{sasl},CONTROLLER://{controller}",
        "advertised.listeners": f"{plain},{sasl}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{login} required user_{account.user}="{account.password}";'
        ),
        "log.dirs": str(data),
        **_SMALL,
        **_PROMPT,
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


# One node has one copy of everything.
_SMALL = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # By default the cleaner takes a quarter of the heap at the start.
    "log.cleaner.dedupe.buffer.size": "4194304",
}

# A test of retention or compaction should not wait for minutes.
_PROMPT = {
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    # After a kill, the broker that is gone holds its place for one session.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
}
