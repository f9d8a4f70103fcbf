"""Spark's Java: what it says where it does not start, and who it runs for."""

import gc
import os
from pathlib import Path

import pytest

from tests.throttle.spark.test_java import fake_java
from throttle.settings import ThrottleSettings
from throttle.spark.java import Java
from throttle.spark.session import create_session
from throttle.spark.start.java_process import NoSpark, nameless_user


@pytest.fixture
def _environment_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the start of a session sets of it."""
    for name in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "changed")
    for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "")


@pytest.mark.spark
# PySpark leaves the pipe to a Java that has ended to the garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_environment_as_before")
def test_a_java_that_does_not_start_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only that a gateway has exited; and nothing is left of the attempt."""
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    home = fake_java(tmp_path / "java", "echo 'there is no room' >&2; exit 1")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    gc.collect()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(NoSpark, match=r"Java did not start: there is no room$"):
        create_session(ThrottleSettings(), Java(home), scratch)
    # Fewer, if what a test before this one left was closed meanwhile.
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_user_with_a_name_is_left_to_hadoop() -> None:
    assert nameless_user({"HADOOP_USER_NAME": "somebody"}) is None


def test_a_user_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number's, or what the operator says."""
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    assert nameless_user({}) == "user-54321"
    assert nameless_user({"HADOOP_USER_NAME": "feeds"}) == "feeds"
