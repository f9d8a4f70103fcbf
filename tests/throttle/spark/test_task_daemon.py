"""Spark's daemon of the workers that run tasks."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.serializers import UTF8Deserializer

from tests.conftest import PATIENCE, eventually
from throttle.spark import task_daemon

LOADED = """
import gc, sys
from pyspark import daemon
from throttle.spark import task_daemon
daemon.manager = lambda: print(gc.get_freeze_count() > 0, *sys.modules)
task_daemon.main()
"""


def test_what_a_worker_needs_is_loaded_before_it_is_forked() -> None:
    """All workers share it; what checks settings or writes logs is not among it."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    is_frozen, *modules = done.stdout.split()
    assert is_frozen == "True"
    assert {"pyspark.worker", "throttle.spark.reader", "redis", "pyarrow"} <= {*modules}
    assert not {"pydantic", "structlog", "confluent_kafka"} & {*modules}


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def test_it_forks_workers_until_spark_has_ended(folder: str) -> None:
    """It hears of that as Spark's own does: nobody writes to it any more.

    A worker says where it is when it is asked by SIGUSR1, and goes on.
    """
    environment = {
        **os.environ,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": folder,
    }
    said = Path(folder, "stderr")
    with (
        said.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", task_daemon.__name__, "pyspark.worker"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as daemon,
    ):
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        path = UTF8Deserializer().loads(daemon.stdout)
        with socket.socket(socket.AF_UNIX) as spark:
            spark.settimeout(10 * PATIENCE)
            spark.connect(path)
            worker = psutil.Process(int.from_bytes(spark.recv(4)))
            assert worker.parent() == psutil.Process(daemon.pid)
            worker.send_signal(signal.SIGUSR1)
            eventually(lambda: b"recent call first" in said.read_bytes())
            assert worker.is_running()
            daemon.stdin.close()
            daemon.wait(10 * PATIENCE)
        worker.wait(10 * PATIENCE)
