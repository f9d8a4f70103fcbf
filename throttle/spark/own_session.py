"""A Spark for one question: started as a job starts it, ended with the answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from throttle.settings import SparkSettings
from throttle.spark.java import NoJava, find_java
from throttle.spark.query import first_line
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import running_spark
from throttle.spark.start.java_process import NoSpark

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""What a call to Spark raises; the last one where its JVM has ended."""


@contextmanager
def own_spark(
    settings: SparkSettings, failed: type[RuntimeError]
) -> Iterator[tuple[SparkSession, Path]]:
    """Start Spark; yield its session and a folder for the question's own files.

    Raises ``failed`` with a sentence where Spark cannot start or does not answer.
    """
    try:
        with scratch_folder() as scratch:
            java = find_java(settings.java_home, scratch)
            with running_spark(settings, java, scratch) as spark:
                yield spark, scratch
    except (NoFolder, NoJava, NoSpark, *SPARK_ERRORS) as error:
        raise failed(first_line(error)) from error
