"""Memory is given back when it is due, and nothing is missed later."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from tests.conftest import PATIENCE
from tests.quick_java import QUICK_OPTIONS
from throttle.spark.idle_collector import IdleCollector

pytestmark = pytest.mark.spark


# Workers are not used again here, so that none waits a minute for another question.
ASKS = """
import sys, tempfile
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql.datasource import DataSource, DataSourceReader
from throttle.settings import ThrottleSettings
from throttle.spark.idle_collector import end_idle_planners
from throttle.spark.java import find_java
from throttle.spark.session import create_session


class Reader(DataSourceReader):
    def read(self, partition):
        yield (1,)


class Source(DataSource):
    @classmethod
    def name(cls):
        return "onerow"

    def schema(self):
        return "n int"

    def reader(self, schema):
        return Reader()


def planners():
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if is_planner(child)
    ]


def is_planner(process):
    with suppress(psutil.NoSuchProcess):
        return "pyspark.sql.worker." in " ".join(process.cmdline()[-1:])
    return False


with tempfile.TemporaryDirectory(prefix="tt-") as folder:
    scratch = Path(folder)
    options = {
        "spark.python.worker.reuse": "false",
        "spark.driver.extraJavaOptions": sys.argv[1],
    }
    settings = ThrottleSettings(spark_conf=options)
    spark = create_session(settings, find_java(None, scratch), scratch)
    spark.dataSource.register(Source)
    for _ in range(2):
        print("rows", spark.read.format("onerow").load().count())
        before = planners()
        psutil.wait_procs([w for p in before for w in p.children()], timeout=10)
        print("ended", end_idle_planners())
        psutil.wait_procs(before, timeout=10)
        print("left", len(planners()))
    spark.stop()
"""


def collections(spark: SparkSession) -> int:
    """Count how often Java has collected all of its heap."""
    java = spark._jvm.java  # type: ignore[union-attr]
    beans = java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    counts = {bean.getName(): bean.getCollectionCount() for bean in beans}
    return int(counts["MarkSweepCompact"])


def test_the_chance_is_taken_when_it_is_due_and_not_before(
    spark: SparkSession,
) -> None:
    """Java has collected all of its heap then, once."""
    before = collections(spark)
    assert not IdleCollector(3_600).idle(spark)
    assert collections(spark) == before
    collector = IdleCollector(3_600)
    collector._due_s = 0
    assert collector.idle(spark)
    assert collections(spark) == before + 1
    # It is due again a while later only: Java stands still for it.
    assert not collector.idle(spark)


def test_planners_without_a_worker_end_and_spark_starts_others() -> None:
    """Nobody notices: the next query is planned as the first one was."""
    asked = subprocess.run(
        [sys.executable, "-c", ASKS, QUICK_OPTIONS],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
    )
    once = "rows 1\nended 2\nleft 0\n"
    assert (asked.stdout, asked.returncode) == (once * 2, 0), asked.stderr
