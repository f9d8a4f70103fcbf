"""The job on a Spark cluster: a master and two workers, each a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from itertools import islice

import pytest

from ingest.kafka.address import KafkaTopic
from ingest.kafka.writer import KafkaLogWriter
from ingest.redis_keys import Keys
from tests.conftest import PATIENCE, eventually
from tests.e2e.books import check_against_oracle
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.crash import READ
from tests.e2e.processes import Running, running_command
from tests.e2e.rig import PATIENCE_S, Rig, create_rig
from tests.kafka import make_topic
from tests.kafka_broker.broker import Broker
from tests.logged import Logged, logged_in_kafka
from tests.paths import ROOT
from tickthrottle_client.kafka_client import open_topic

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W, TASKS = 500, 3
SUBMIT = ROOT / "tickthrottle.py"


class Stage:
    """A feed, a cluster, and one job on it for as many tests as it survives."""

    def __init__(self, rig: Rig, cluster: Cluster) -> None:
        self.rig = rig
        self.cluster = cluster
        self._stack = ExitStack()
        self._job: Running | None = None

    def job(self) -> Running:
        """Return the job, ready; it began with a backlog."""
        if self._job is None or self._job.process.poll() is not None:
            self.end_job()
            command = [sys.executable, "-m", "tickthrottle", "throttle"]
            self._job = self._stack.enter_context(
                self.run(command, **self.cluster.environment())
            )
            self._job.wait_for('"event": "ready"', PATIENCE_S)
        return self._job

    def run(
        self, command: Sequence[str], **environment: str
    ) -> AbstractContextManager[Running]:
        """Run a job out of a folder in which there is nothing to find."""
        return running_command(
            self.rig.folder / "logs",
            "throttle",
            command,
            cwd=self.rig.folder / "data",
            **{
                **self.rig.environment,
                "TICKTHROTTLE_BACKLOG_TASKS": str(TASKS),
                "TICKTHROTTLE_MAX_WINDOWS_PER_BATCH": "10",
                **environment,
            },
        )

    def end_job(self) -> None:
        """End the job: the cluster is free then."""
        self._stack.close()
        self._job = None

    def wait_for_window(self, namespace: str, end_ms: int, job: Running) -> None:
        """Wait until a namespace has a window; fail if its job ends before."""
        meta = Keys(namespace).meta

        def check() -> bool:
            assert job.process.poll() is None, job.log()[-3_000:]
            return int(self.rig.client.hget(meta, "window") or 0) >= end_ms

        eventually(check, PATIENCE_S)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A cluster with two workers and a feed, one for the whole file."""
    folder = tmp_path_factory.mktemp("cluster")
    with (
        create_rig(folder / "rig", W) as rig,
        rig.feed(),
        running_cluster(folder / "spark") as cluster,
    ):
        stage = Stage(rig, cluster)
        yield stage
        stage.end_job()


def test_the_workers_do_not_have_the_project(stage: Stage) -> None:
    """What runs on them is what they were sent; the rest is installed there."""
    program = (
        "import importlib.util as u; names = ('throttle', 'ingest', 'redis', 'pyspark')"
        "; print([u.find_spec(name) is not None for name in names])"
    )
    done = subprocess.run(
        [stage.cluster.python, "-c", program],
        cwd=stage.rig.folder,
        env={**os.environ, "SPARK_EXECUTOR_DIRS": "as an executor"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[False, False, True, True]"


def test_a_backlog_is_read_by_all_workers(stage: Stage) -> None:
    """Every window is as the oracle says, as those of one process are."""
    job = stage.job()
    stage.rig.wait_until_live(job)
    backlogs = [s for s in stage.cluster.executors_of_stages() if len(s) == TASKS]
    assert any(len(set(executors)) == 2 for executors in backlogs), backlogs
    assert stage.rig.check().trades > 0
    rebuilt = subprocess.run(
        [sys.executable, "-m", "tickthrottle", "rebuild", "--redis-url", stage.rig.url],
        capture_output=True,
        text=True,
    )
    assert rebuilt.returncode == 0, rebuilt.stdout + rebuilt.stderr


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_worker_lost_in_the_middle_of_a_batch_costs_nothing(
    stage: Stage, fault: str
) -> None:
    """Its tasks are run again elsewhere: no window is missing, doubled or different.

    A killed one is missed at once, one that only falls silent after a while.
    """
    job = stage.job()
    stage.cluster.complete()
    stage.cluster.wait_until_used()
    victim = stage.cluster.workers[0]
    lose = victim.end if fault == "killed" else partial(victim.signal, signal.SIGSTOP)
    try:
        # A pause makes a backlog, which every worker reads.
        stage.rig.proxy.pause()
        lost = stage.rig.proxy.act_on(READ, "before", lose)
        time.sleep(3)
        offset = stage.rig.offset()
        stage.rig.proxy.resume()
        assert lost.wait(20 * PATIENCE), job.log()[-2_000:]
        stage.rig.wait_for_offset(offset + 8, job=job)
    finally:
        victim.end()
    stage.rig.wait_until_live(job)
    assert stage.rig.check().trades > 0


def test_the_job_can_be_submitted_and_its_workers_read_kafka(
    stage: Stage, kafka: Broker
) -> None:
    """``spark-submit`` says where it runs; the topic is read by the workers."""
    stage.cluster.complete()
    stage.end_job()
    name = make_topic(kafka, 4, message_timestamp_type="LogAppendTime")
    topic = KafkaTopic(kafka.servers, name)
    info = open_topic(topic)
    events = islice(stage.rig.events(info), 3_000)
    KafkaLogWriter(topic, info).append([(e.key, e.payload) for e in events])
    upto_ms = (stage.rig.clock_ms() // W + 1) * W
    command = [*stage.cluster.submit_command(), str(SUBMIT), "throttle"]
    environment = {
        "TICKTHROTTLE_NAMESPACE": "sent",
        "TICKTHROTTLE_TRADE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": kafka.servers,
        "TICKTHROTTLE_KAFKA_TOPIC": name,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(stage.cluster.python),
    }
    with stage.run(command, **environment) as job:
        stage.wait_for_window("sent", upto_ms, job)

    def log() -> list[Logged]:
        return logged_in_kafka(kafka.servers, name)

    checked = check_against_oracle(stage.rig.client, W, "sent", log)
    assert checked.trades == len(log()) == 3_000
