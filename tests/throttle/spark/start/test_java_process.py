"""Spark's Java: what it says where it does not start, and who it runs for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.throttle.spark.test_java import fake_java
from throttle.spark.start.java_process import nameless_user

# Tries to start with the Java of the first argument and the scratch of the second;
# prints what was said, and how many descriptors are left of the attempt.
ATTEMPT = """
import gc, os, sys
from pathlib import Path
from throttle.settings import ThrottleSettings
from throttle.spark.java import Java
from throttle.spark.session import create_session
from throttle.spark.start.java_process import NoSpark

before = os.listdir("/proc/self/fd")
try:
    create_session(ThrottleSettings(), Java(Path(sys.argv[1])), Path(sys.argv[2]))
except NoSpark as error:
    print(error)
gc.collect()
print(len(os.listdir("/proc/self/fd")) - len(before))
"""


@pytest.mark.spark
def test_a_java_that_does_not_start_is_told_in_its_own_words(tmp_path: Path) -> None:
    """Not only that a gateway has exited; and nothing is left of the attempt.

    The attempt has a process of its own: what other tests open and leave to the garbage
    is not counted.
    """
    home = fake_java(tmp_path / "java", "echo 'there is no room' >&2; exit 1")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", ATTEMPT, str(home), str(scratch)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    told, left = result.stdout.splitlines()
    assert told.endswith("Java did not start: there is no room"), told
    assert left == "0"


def test_a_user_with_a_name_is_left_to_hadoop() -> None:
    assert nameless_user({"HADOOP_USER_NAME": "somebody"}) is None


def test_a_user_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number's, or what the operator says."""
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    assert nameless_user({}) == "user-54321"
    assert nameless_user({"HADOOP_USER_NAME": "feeds"}) == "feeds"
