"""Prepares the machine for the job: once, so that each start is a shorter one."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import SubprocessError

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ingest.tradelog.contract import LogInfo
from throttle.job import ThrottleFailed, warm_up
from throttle.settings import ThrottleSettings
from throttle.spark import class_archive
from throttle.spark.java import NoJava, find_java
from throttle.spark.options import source_options
from throttle.spark.query import first_line
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import create_session
from throttle.spark.start.java_process import NoSpark

TRAINING_WINDOWS = 30
"""Made-up windows from which Java learns what is called often."""

_WRITTEN_WITHIN_S = 300.0


class PrepareFailed(RuntimeError):
    """There is no archive of Spark's classes; the message says why."""


def make_class_archive(
    settings: ThrottleSettings, stop: threading.Event, windows: int = TRAINING_WINDOWS
) -> Path:
    """Make the archive of Spark's classes (``class_archive.py``); return its path.

    Spark is warmed up as the job does it, in some twenty seconds, and its Java writes
    down what it has learned. Needs neither Redis nor a log. An archive that is there
    is replaced. Raises PrepareFailed, also when told to stop.
    """
    archive = class_archive.path()
    part = archive.with_suffix(f".{os.getpid()}")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder() as scratch, _prints_into(scratch / "output"):
            _record(settings, part, scratch, stop, windows)
        part.replace(archive)
    except OSError as error:
        raise PrepareFailed(f"{error.filename}: {error.strerror}") from error
    except (NoFolder, NoJava, NoSpark, ThrottleFailed) as error:
        raise PrepareFailed(str(error)) from error
    except (Py4JError, PySparkException, SubprocessError) as error:
        # A terminal's signal ends Java, too.
        words = "told to stop" if stop.is_set() else first_line(error)
        raise PrepareFailed(words) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return archive


def _record(
    settings: ThrottleSettings,
    file: Path,
    scratch: Path,
    stop: threading.Event,
    windows: int,
) -> None:
    java = find_java(None, scratch)
    if not java.is_bundled:
        raise PrepareFailed("the bundled Java does not run on this machine")
    # An archive is for all jobs of this Python environment.
    settings = settings.model_copy(update={"spark_master": None, "spark_conf": {}})
    info = LogInfo("made-up", settings.partitions, time.time_ns() // 1_000_000)
    options = source_options(settings, info)
    spark = create_session(settings, java, scratch, class_archive.recording(file))
    try:
        warm_up(spark, settings, options, scratch, stop, windows)
    finally:
        _end(spark, is_written=not stop.is_set())
    if stop.is_set():
        raise PrepareFailed("told to stop")
    if not file.exists():
        raise PrepareFailed("Java did not write an archive of Spark's classes")


def _end(spark: SparkSession, is_written: bool) -> None:
    """Stop Spark and its Java, and wait: what it has to write takes seconds.

    Where nothing ``is_written``, Java is killed before it begins to.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # it belongs to the context, whatever the types say
    with suppress(Py4JError, OSError):
        spark.stop()
    if not is_written:
        gateway.proc.kill()
    gateway.shutdown()
    # Spark's Java ends when it can read nothing more.
    gateway.proc.stdin.close()
    gateway.proc.wait(_WRITTEN_WITHIN_S)


@contextmanager
def _prints_into(file: Path) -> Iterator[None]:
    """Send what this process and its children print to a file, within the block.

    Java tells of each step in lines of 20,000 characters.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    before = [os.dup(number) for number in (1, 2)]
    with file.open("wb") as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, own in zip((1, 2), before, strict=True):
            os.dup2(own, number)
            os.close(own)
