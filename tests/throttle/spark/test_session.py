"""How Spark is started."""

import os
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from throttle.settings import AnalyticsSettings, ThrottleSettings
from throttle.spark import task_daemon
from throttle.spark.java import Java
from throttle.spark.session import (
    create_session,
    is_local,
    java_locale,
    spark_options,
)
from throttle.spark.start.java_process import NoSpark

SCRATCH = Path("/scratch")
DRIVER = ("spark.driver.host", "spark.driver.bindAddress")


@pytest.mark.spark
def test_python_processes_import_the_compiled_package(spark: SparkSession) -> None:
    """Out of Spark's zipped copy each would compile it; two are not even started."""
    home = Path(os.environ["SPARK_HOME"])
    assert not (home / "python").exists()
    assert (home / "jars").samefile(Path(pyspark.__file__).parent / "jars")
    # Spark asks nobody which sources are installed: the job registers its own.
    assert not Path(os.environ["PYSPARK_DRIVER_PYTHON"]).exists()


@pytest.mark.spark
def test_nothing_listens_but_on_loopback(spark: SparkSession) -> None:
    """Spark's driver is nobody else's business, and it has no pages."""
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.driver.bindAddress") == "127.0.0.1"
    assert settings.get("spark.ui.enabled") == "false"
    own = spark_options(ThrottleSettings(), SCRATCH, {})
    assert own["spark.master"] == "local[2,2]"


def test_one_idle_worker_knows_all_that_is_shown() -> None:
    """Two would take turns. The queries of analytics have tasks at the same time."""
    name, options = "spark.python.factory.idleWorkerMaxPoolSize", (SCRATCH, {})
    assert spark_options(ThrottleSettings(), *options)[name] == "1"
    assert name not in spark_options(AnalyticsSettings(), *options)


def test_a_job_that_no_window_waits_for_has_a_small_new_generation() -> None:
    """Its garbage is collected more often; the throttle's windows wait for that."""
    name, options = "spark.driver.extraJavaOptions", (SCRATCH, {})
    assert "-Xmn24m" not in spark_options(ThrottleSettings(), *options)[name]
    assert spark_options(AnalyticsSettings(), *options)[name].endswith(" -Xmn24m")


@pytest.mark.parametrize("master", ["local", "local[8,2]"])
def test_a_local_master_is_reached_on_loopback_only(master: str) -> None:
    """More tasks at a time change nothing else."""
    options = spark_options(ThrottleSettings(spark_master=master), SCRATCH, {})
    assert is_local(master)
    assert options["spark.master"] == master
    assert {options[name] for name in DRIVER} == {"127.0.0.1"}
    # The executor is this process: it cannot be away, however long both have slept.
    assert options["spark.network.timeout"] == "1d"
    # Its tasks find this code before Spark has sent it to them.
    assert options["spark.python.daemon.module"] == task_daemon.__name__


@pytest.mark.parametrize("master", ["spark://a:7077,b:7077", "yarn"])
def test_nothing_of_this_machine_is_told_to_other_ones(master: str) -> None:
    """Its folders are the driver's; where it is reached, Spark finds or is told."""
    options = spark_options(ThrottleSettings(spark_master=master), SCRATCH, {})
    assert not is_local(master)
    assert not options.keys() & {*DRIVER, "spark.local.dir"}
    assert not any(name.startswith("spark.python.daemon") for name in options)
    mentions = {name for name, value in options.items() if str(SCRATCH) in value}
    assert mentions == {"spark.driver.extraJavaOptions", "spark.sql.warehouse.dir"}
    # A container's own folder has a name too long for a socket.
    folder = options.get("spark.python.unix.domain.socket.dir")
    assert folder == ("/tmp" if master == "yarn" else None)


def test_an_option_of_the_operator_wins_and_the_scratch_folder_stays() -> None:
    """What was tuned here may be wrong there."""
    conf = {
        "spark.network.timeout": "60s",
        "spark.cores.max": "4",
        "spark.driver.extraJavaOptions": "-Xlog:gc",
    }
    settings = ThrottleSettings(spark_master="spark://h:7077", spark_conf=conf)
    options = spark_options(settings, SCRATCH, {})
    assert options["spark.network.timeout"] == "60s"
    assert options["spark.cores.max"] == "4"
    java = options["spark.driver.extraJavaOptions"]
    assert java == "-Djava.io.tmpdir=/scratch -Xlog:gc"
    own = spark_options(ThrottleSettings(), SCRATCH, {}, "-XX:AOTCache=a")
    java = own["spark.driver.extraJavaOptions"]
    assert java.startswith("-Djava.io.tmpdir=/scratch -XX:AOTCache=a -XX:+UseSerialGC ")


def test_what_spark_submit_was_told_wins_over_the_jobs_own_options() -> None:
    """Above all its master; a setting of the job's own comes last and wins."""
    submitted = {
        "spark.master": "spark://submitted:7077",
        "spark.ui.enabled": "true",
        "spark.cores.max": "4",
    }
    settings = ThrottleSettings(spark_conf={"spark.cores.max": "2"})
    options = spark_options(settings, SCRATCH, submitted)
    assert options["spark.master"] == "spark://submitted:7077"
    assert options["spark.ui.enabled"] == "true"
    assert options["spark.cores.max"] == "2"
    assert options["spark.network.timeout"] == "10s"


def test_a_python_that_only_the_workers_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The driver asks the source in a process of that Python, too."""
    for name in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "changed")
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    settings = ThrottleSettings(spark_master="yarn")
    with pytest.raises(NoSpark, match=r"PYSPARK_PYTHON \./environment/bin/python: "):
        create_session(settings, Java(tmp_path), tmp_path)
    # What YARN sends to its containers.
    zipped = Path(os.environ["SPARK_HOME"]) / "python" / "lib" / "pyspark.zip"
    assert zipped.is_file()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "C", "LANG": "ko_KR.UTF-8"}, {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX"}, {"LC_ALL": "C.UTF-8"}),
        ({"LANG": "ko_KR.UTF-8"}, {}),
        ({"LANG": "C.UTF-8"}, {}),
    ],
    ids=["nothing", "all", "ctype", "korean", "utf-8"],
)
def test_java_reads_names_of_files_as_python_does(
    environment: dict[str, str], expected: dict[str, str]
) -> None:
    """In the locale C, too: a project may lie in a folder with any name."""
    assert java_locale(environment) == expected
