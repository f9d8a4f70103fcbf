"""How Spark is started."""

import os
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_python_processes_import_the_compiled_package(spark: SparkSession) -> None:
    """Out of Spark's zipped copy each would compile it anew."""
    home = Path(os.environ["SPARK_HOME"])
    assert not (home / "python").exists()
    assert (home / "jars").samefile(Path(pyspark.__file__).parent / "jars")


def test_nothing_listens_but_on_loopback(spark: SparkSession) -> None:
    """Spark's driver is nobody else's business, and it has no pages."""
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.driver.bindAddress") == "127.0.0.1"
    assert settings.get("spark.ui.enabled") == "false"
