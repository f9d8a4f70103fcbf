"""A whole pipeline into topics, from there into a database and a program in Java.

Programs are those of ``docs/kafka.md``, as they stand there.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.process.direct_http import open_direct
from tests.archive.postgres.server import PostgresServer
from tests.archive.topics.reading import committed
from tests.conftest import eventually
from tests.doc_pages import blocks
from tests.e2e.processes import Running, running_command
from tests.e2e.rig import Rig, create_rig
from tests.kafka import options
from tests.kafka_broker.broker import JARS, Broker
from tests.ports import free_port
from tests.published import read_snapshots

pytestmark = [pytest.mark.redis, pytest.mark.kafka, pytest.mark.spark, pytest.mark.e2e]

PAGE = "docs/kafka.md"
PREFIX = "prices"
WINDOW_MS = 1_000
WINDOWS_AFTER = 12
"""So many windows come after the kills."""
BY_ISIN = "SELECT isin, count(*) FROM prices GROUP BY 1"
PARTITIONS = 3
"""Of the topic of rows."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with create_rig(tmp_path / "rig", WINDOW_MS) as rig:
        yield rig


@contextmanager
def consuming(
    folder: Path, kafka: Broker, server: PostgresServer, name: str
) -> Iterator[Running]:
    [program] = [b for b in blocks(PAGE, "python") if "psycopg" in b]
    (folder / "topic_to_postgres.py").write_text(program)
    command = [sys.executable, "topic_to_postgres.py", kafka.servers, PREFIX]
    with running_command(folder, name, [*command, server.url()], folder) as process:
        yield process


@contextmanager
def showing_latest(folder: Path, kafka: Broker) -> Iterator[Running]:
    found = shutil.which("javac")
    if found is None:
        pytest.skip("needs a JDK: javac")
    [program] = blocks(PAGE, "java")
    (folder / "LatestPrices.java").write_text(program)
    java = Path(found).resolve().with_name("java")
    command = [str(java), "-cp", f"{JARS}/*", f"-Djava.io.tmpdir={folder}"]
    command += ["LatestPrices.java", kafka.servers, PREFIX]
    with running_command(folder, "java", command, folder) as process:
        yield process


def shown_prices(process: Running) -> dict[str, str]:
    """Return the prices of the newest list that a program has written whole."""
    lists = process.log().split("---\n")
    lines = lists[-2].splitlines() if len(lists) > 1 else []
    rows = [json.loads(line, parse_float=str) for line in lines if line[:1] == "{"]
    return {row["isin"]: str(row["price"]) for row in rows}


def board_prices(port: int) -> dict[str, str]:
    with open_direct(f"http://127.0.0.1:{port}/v1/quotes", 5) as answer:
        rows: list[dict[str, Any]] = json.load(answer, parse_float=str)["data"]
    return {row["isin"]: str(row["price"]) for row in rows}


def partitions_in(printed: str) -> list[tuple[str | int, ...]]:
    """Return the printed table of day, partition, windows and rows."""
    table = printed.partition("by day and partition")[2]
    lines = re.findall(r"^(\S+-\S+) +(\d+) +([\d,]+) +([\d,]+)$", table, re.MULTILINE)
    return [
        (day, *(int(number.replace(",", "")) for number in numbers))
        for day, *numbers in lines
    ]


def test_what_is_published_is_counted_to_its_end(
    rig: Rig, kafka: Broker, server: PostgresServer, tmp_path: Path
) -> None:
    """Log, topics and database have as many windows and rows, by day and partition; the
    newest prices are the board's. Relay and consumer are killed meanwhile.
    """
    server.ask("DROP TABLE IF EXISTS prices")
    rows = NewTopic(f"{PREFIX}.rows", PARTITIONS, 1)
    admin = AdminClient(options(kafka))
    admin.create_topics([rows])[rows.topic].result(30)
    topics = ("--topics", PREFIX, "--kafka-servers", kafka.servers)
    port = free_port()
    with ExitStack() as stack:
        run = stack.enter_context
        with rig.job() as job, rig.feed():
            relay = run(rig.process("archive", *topics))
            # It makes the topics.
            relay.wait_for("archiving")
            consumer = run(consuming(tmp_path, kafka, server, "consumer"))
            rig.wait_for_offset(4, job=job)
            eventually(lambda: server.ask("SELECT 1 FROM prices LIMIT 1"), 30)
            relay.kill()
            consumer.kill()
            run(rig.process("archive", *topics))
            run(consuming(tmp_path, kafka, server, "consumer-again"))
            run(rig.process("gateway", "--port", str(port)))
            rig.wait_for_offset(rig.offset() + WINDOWS_AFTER, job=job)
        counts = [len(one.rows) for one in read_snapshots(rig.client) if one.rows]
        published = len(counts), sum(counts)

        def stored() -> tuple[int, int]:
            counted = 'SELECT count(DISTINCT (epoch, "offset")), count(*) FROM prices'
            [(windows, lines)] = server.ask(counted)
            return windows, lines

        eventually(lambda: stored() == published, 30)
        of_topic = Counter(r.key for r in committed(kafka, f"{PREFIX}.rows"))
        assert of_topic == Counter(dict(server.ask(BY_ISIN)))
        told = subprocess.run(
            [sys.executable, "-m", "tickthrottle", "reconcile", *topics],
            env={**rig.environment, "REDIS_URL": rig.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr
        [query] = [b for b in blocks(PAGE, "sql") if "count(*)" in b]
        counted = [(str(day), *numbers) for day, *numbers in server.ask(query)]
        assert sum(rows for *_, rows in counted) == published[1]
        assert {partition for _, partition, *_ in counted} == {*range(PARTITIONS)}
        assert partitions_in(told.stdout) == counted

        latest = run(showing_latest(tmp_path, kafka))
        eventually(lambda: shown_prices(latest) == board_prices(port), 60)
