"""The Spark session, tuned for many small batches, in this process or on a cluster."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyspark
import structlog
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ingest.tradelog.speedups import find_speedups, speedups_version
from throttle.settings import SparkSettings, ThrottleSettings
from throttle.spark import class_archive
from throttle.spark.java import Java
from throttle.spark.source import TradeLogSource
from throttle.spark.start.java_process import NoSpark, nameless_user, start_java
from throttle.spark.start.java_words import cause, named, without_heap

log = structlog.get_logger()

PACKAGES = ("ingest", "throttle", "tickthrottle_client")
"""What a task may import of ours; what else it needs is installed on the workers."""

# A task gets a second attempt; local[n] alone gives it one.
_THIS_PROCESS = "local[2,2]"

_EVERYWHERE = {
    "spark.app.name": "tickthrottle",
    # Nothing listens that nobody asked for.
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # JVM and Python talk in small pieces: over TCP each waits 40 ms for a delayed
    # acknowledgement, over a Unix socket none does.
    "spark.python.unix.domain.socket.enabled": "true",
    # The default manager forks more `chmod`s for a file that it writes: 35 ms a batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # A batch is one task: no plan changes on the way, no waiting, no shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.locality.wait": "0",
    "spark.sql.streaming.pollingDelay": "1ms",
    # What the page of Spark would show is kept without the page, too: 30 MB a thousand.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.stopTimeout": "5s",
}

_LOOPBACK = "127.0.0.1"

_ONE_MACHINE = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    # The executor is this process: after a sleep of the whole machine neither has gone.
    # By default it may be given up after two minutes, and no window comes any more.
    "spark.network.timeout": "1d",
    # Not on a cluster, whose machines get our code with their first task.
    "spark.python.daemon.module": "throttle.spark.task_daemon",
}

# A live window is one task. Two idle workers would take turns with it, and each know
# half as much of what is shown.
_ONE_WORKER = {"spark.python.factory.idleWorkerMaxPoolSize": "1"}

_CLUSTER = {
    # An executor whose machine is gone without a word is given up after 10 to 13 s, by
    # default after two minutes or three: for so long its task's window would wait.
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "3s",
}

# Spark uses 60 MiB of its heap. Java's own choice of collector would keep 100 MiB more
# of it, and the second compiler 40 MiB for itself and its profiles. What a batch makes
# fits into the new generation and is gone with it; the old one shrinks to what is used
# whenever it is looked through (idle_collector.py). Java would look through all when
# there are many classes for the first time, too, at any moment. Where less memory is
# set aside for code, it is searched for garbage again and again, all of the heap with
# it, and the heap grows. What compilers have freed goes back once a minute.
_JAVA = (
    "-XX:+UseSerialGC -Xms96m -XX:NewSize=48m -XX:SurvivorRatio=4 "
    "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 -XX:MetaspaceSize=64m "
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:TrimNativeHeapInterval=60000"
)

# With these, Java and Python give back what they no longer use: more than 32 MiB, not
# less. Columns of 100,000 trades a second would come and go with their pages, which
# takes longer than reading them.
_FRUGAL = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "33554432",
}

# There a container's own folder has a path that is too long for a socket.
_YARN = {"spark.python.unix.domain.socket.dir": "/tmp"}


@contextmanager
def running_spark(
    settings: SparkSettings, java: Java, scratch: Path
) -> Iterator[SparkSession]:
    """Start Spark (``create_session``) and stop it at the end. Raises NoSpark."""
    _tell_speedups(settings)
    spark = create_session(settings, java, scratch)
    try:
        yield spark
    finally:
        # The JVM may be gone already, it gets a terminal's signals too.
        with suppress(Py4JError, PySparkException, OSError):
            spark.stop()


def _tell_speedups(settings: SparkSettings) -> None:
    """Say once that the compiled package is used, and where it cannot be, why."""
    if settings.speedups and find_speedups():
        # Loaded where it is needed only.
        from ingest.kafka.column_consumer import columns_fault

        fault = columns_fault()
        told = {"not_for_kafka": fault} if fault else {}
        log.info("speedups", version=speedups_version(), **told)


def create_session(
    settings: SparkSettings,
    java: Java,
    scratch: Path,
    java_options: str | None = None,
) -> SparkSession:
    """Start Spark with the trade log registered as a source.

    ``scratch`` is an existing folder for Spark's files and sockets, with a short path
    (a socket's has at most 107 bytes). ``java_options`` take the place of those that
    use the archive of Spark's classes. On a cluster the executors get this project's
    code; what it needs has to be installed there. Raises NoSpark.
    """
    submitted = _submitted()
    if java_options is None:
        java_options = class_archive.options(java)
    options = spark_options(settings, scratch, submitted, java_options)
    master = options["spark.master"]
    if not submitted:
        # Spark's launcher takes these from the environment only.
        os.environ["JAVA_HOME"] = str(java.home)
        os.environ["SPARK_HOME"] = str(_spark_home(scratch / "spark", master))
        # Spark would ask it which sources are installed: two processes more.
        os.environ["PYSPARK_DRIVER_PYTHON"] = str(scratch / "none")
        # Spark starts its Python processes with -m, which looks into the working
        # folder first: a module there must not hide one of ours.
        os.environ["PYTHONSAFEPATH"] = "1"
        os.environ.update(java_locale(os.environ))
        _adjust_java_variables()
        for name, value in _FRUGAL.items():
            os.environ.setdefault(name, value)
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Spark would look up this machine's name first, which need not have an address.
        os.environ["SPARK_LOCAL_IP"] = os.environ["SPARK_LOCAL_HOSTNAME"] = _LOOPBACK
    else:
        program = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if shutil.which(program) is None:
            raise NoSpark(
                f"PYSPARK_PYTHON {program}: must be found where the job is started, too"
            )
    # As Spark's other Python processes; this one has loaded Arrow already.
    pa.set_memory_pool(pa.system_memory_pool())
    conf = SparkConf().setAll(list(options.items()))
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        if not submitted:
            start_java(conf, nameless_user(os.environ))
        spark = SparkSession.Builder().config(conf=conf).getOrCreate()
    except (Py4JError, PySparkException) as error:
        reason = f"spark_master {master}: Spark did not start: {_reason(error)}"
        raise NoSpark(reason) from error
    if threading.current_thread() is threading.main_thread():
        # PySpark puts its own in place, which ends the open batch with a stack trace.
        signal.signal(signal.SIGINT, on_interrupt)
    if not is_local(master):
        _ship(spark.sparkContext, pack_code(scratch))
    spark.dataSource.register(TradeLogSource)
    return spark


def java_locale(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what makes Java read the names of files as UTF-8, also in the locale C."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next(filter(None, map(environment.get, names)), "C")
    return {"LC_ALL": "C.UTF-8"} if locale in ("C", "POSIX") else {}


def is_local(master: str) -> bool:
    """Tell whether tasks run in the driver's own process."""
    return master.partition("[")[0] == "local"


def spark_options(
    settings: SparkSettings,
    scratch: Path,
    submitted: Mapping[str, str],
    java_options: str = "",
) -> dict[str, str]:
    """Return Spark's options: the job's own, but what an operator says wins.

    ``submitted`` is what ``spark-submit`` was told, if at all; its master counts.
    """
    master = submitted.get("spark.master", settings.spark_master or _THIS_PROCESS)
    is_throttle = isinstance(settings, ThrottleSettings)
    own = {
        **_EVERYWHERE,
        **(_ONE_MACHINE if is_local(master) else _CLUSTER),
        **(_ONE_WORKER if is_throttle and is_local(master) else {}),
        **(_YARN if master == "yarn" else {}),
        "spark.driver.memory": f"{settings.spark_memory_mb}m",
        # Not where the cluster's file system would be the default one.
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }
    operators = {**submitted, **settings.spark_conf}
    # The driver's files and sockets go there; an executor has its own place for them.
    # An operator may want another collector, and two would be an error.
    # No window waits for another job, which may collect its garbage twice as often.
    tuned = _JAVA if is_throttle else f"{_JAVA} -Xmn24m"
    asked = operators.get("spark.driver.extraJavaOptions", tuned)
    java = [f"-Djava.io.tmpdir={scratch}", java_options, asked]
    return {
        **own,
        **operators,
        "spark.master": master,
        "spark.driver.extraJavaOptions": " ".join(filter(None, java)),
    }


def pack_code(folder: Path) -> Path:
    """Write the packages as they are installed here into a zip; return its path."""
    packed = folder / "tickthrottle.zip"
    with ZipFile(packed, "w") as archive:
        for package in PACKAGES:
            home = Path(str(files(package)))
            for file in sorted(home.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(home.parent))
    return packed


def _adjust_java_variables() -> None:
    """Say which options Java takes from the environment; take the heap's out."""
    changed, left_out = without_heap(os.environ)
    if left_out:
        log.warning(
            "java's heap is not set by variables",
            left_out="; ".join(left_out),
            advice="TICKTHROTTLE_SPARK_MEMORY_MB sets it",
        )
    os.environ.update(changed)
    if variables := named(os.environ):
        log.info("java takes options from variables", variables=", ".join(variables))


def _ship(context: SparkContext, code: Path) -> None:
    context.addPyFile(code.as_uri())
    # What was added is found by tasks, not by the source's own process on the driver.
    environment = context.environment
    others = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(code), others]))


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if not isinstance(error, Py4JError):
        return text.partition("\n")[0]
    # Py4J's first line says which call failed, the next ones are Java's.
    return cause(text.lstrip("\n").splitlines()[1:]) or text


def _submitted() -> dict[str, str]:
    """Return the options of the ``spark-submit`` that started us; empty if none did."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    # The JVM runs already and knows; there is no public way to it before a session.
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _spark_home(folder: Path, master: str) -> Path:
    """Return a home of the installed Spark without its zipped Python package."""
    # A query's half dozen Python processes then import the installed one, which is
    # compiled: half a second each. YARN insists on the zip, to ship it.
    folder.mkdir()
    installed = Path(pyspark.__file__).parent
    names = ("bin", "jars", "python") if master == "yarn" else ("bin", "jars")
    for name in names:
        (folder / name).symlink_to(installed / name, target_is_directory=True)
    return folder
