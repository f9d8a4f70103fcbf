"""Starts Spark's Java, and knows what it said where it does not start."""

import os
import pwd
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from throttle.spark.start.java_words import cause

_MOST_LINES, _MOST_LINE_BYTES = 40, 8_192
_LAST_WORDS_S = 2.0


class NoSpark(RuntimeError):
    """Spark did not start; the message says where, and Spark's own reason."""


def start_java(conf: SparkConf, user: str | None = None) -> None:
    """Start the Java of the session that is made next; its output goes to stderr.

    ``user`` is who Hadoop believes to run it. Raises NoSpark with Java's own words.
    """
    if SparkContext._gateway is not None:
        return
    output = _Output()
    try:
        # PySpark offers this: a pipe of one's own in place of its standard output.
        launch: Callable[..., JavaGateway] = launch_gateway
        pipe = {"stdout": output.writing, "stderr": output.writing}
        gateway = launch(conf, pipe)
    except PySparkException as error:
        words = cause(output.last_lines()) or str(error).partition("\n")[0]
        raise NoSpark(f"Spark's Java did not start: {words}") from error
    finally:
        output.release()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    if user is not None:
        hadoop = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        hadoop.setLoginUser(hadoop.createRemoteUser(user))


def nameless_user(environment: Mapping[str, str]) -> str | None:
    """Return what to call a user without a name, as in containers; None for others.

    Hadoop would ask the system for it, and not start.
    """
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return environment.get("HADOOP_USER_NAME") or f"user-{os.geteuid()}"
    return None


class _Output:
    """Java's output: passed on to standard error, of which the last lines are kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._reading, self.writing = os.pipe()
        self._copier = threading.Thread(
            target=self._copy, name="java-output", daemon=True
        )
        self._copier.start()

    def release(self) -> None:
        """Leave the pipe's other end to Java: it ends with Java and its children."""
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1

    def last_lines(self) -> list[str]:
        """Return the last lines of a Java that has ended."""
        self.release()
        self._copier.join(_LAST_WORDS_S)
        return list(self._lines)

    def _copy(self) -> None:
        with os.fdopen(self._reading, "rb") as stream:
            while line := stream.readline(_MOST_LINE_BYTES):
                self._lines.append(line.decode("utf-8", "replace"))
                # Java must not wait for a reader who has gone.
                with suppress(OSError):
                    os.write(2, line)
