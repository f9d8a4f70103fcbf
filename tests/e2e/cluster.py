"""A Spark cluster of this machine: a master and workers of the installed Spark."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from tests.conftest import eventually
from tests.ports import free_port
from tests.quick_java import QUICK_OPTIONS
from throttle.spark.java import find_java

# A Python that sees what is installed, but not this project: an editable install is
# found through a .pth file, which -S skips. On the driver it finds what it is told to,
# in an executor not even that: there it could as well be on another machine.
_PYTHON = """\
#!/bin/sh
test -z "$SPARK_EXECUTOR_DIRS" || PYTHONPATH=
PYTHONPATH="{packages}:{spark}:$PYTHONPATH" exec "{python}" -S "$@"
"""


_STARTING = "Starting Spark master at "
_HOME = Path(pyspark.__file__).parent


class Daemon:
    """A master or worker: a process in a session of its own, with all it started."""

    def __init__(self, name: str, folder: Path, java_home: Path, *args: str) -> None:
        self.folder = folder / name
        (self.folder / "tmp").mkdir(parents=True)
        self._log = self.folder / "log"
        kind = "master.Master" if name == "master" else "worker.Worker"
        environment = {
            "PATH": os.environ["PATH"],
            "JAVA_HOME": str(java_home),
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "tmp"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_OPTIONS,
        }
        address = ("--host", "127.0.0.1", "--port", str(free_port()))
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}"),
                    *(*address, "--webui-port", "0", *args),
                ],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def log(self) -> str:
        """Return what it has written."""
        return self._log.read_text("utf-8", "replace")

    def wait_for(self, words: str) -> None:
        """Wait until it has said these words; fail if it ends before."""

        def check() -> bool:
            assert self.process.poll() is None, self.log()[-3_000:]
            return words in self.log()

        eventually(check, 60)

    def family(self) -> list[psutil.Process]:
        """Return it and everything it has started: executors, Python workers."""
        try:
            me = psutil.Process(self.process.pid)
            return [me, *me.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def commands(self) -> str:
        """Return the command lines of all it has started."""
        lines = []
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                lines.append(" ".join(process.cmdline()))
        return "\n".join(lines)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to everything it has started."""
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def end(self) -> None:
        """End it and everything it has started."""
        # Not again what follows: a child that lost its parent is not found any more.
        family = self.family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        psutil.wait_procs(family, timeout=10)


class Cluster:
    """A master and workers of one core each; ``python`` is what tasks run on."""

    def __init__(self, folder: Path, workers: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._java_home = find_java(None, folder).home
        self._size = workers
        self.workers: list[Daemon] = []
        # Of killed executors sockets are left; a socket's path must be short.
        self._sockets = Path(tempfile.mkdtemp(prefix="tt-"))
        self._events = folder / "events"
        self._events.mkdir()
        self.python = folder / "python"
        self.python.write_text(
            _PYTHON.format(
                packages=sysconfig.get_path("purelib"),
                spark=_HOME.parent,
                python=sys.executable,
            )
        )
        self.python.chmod(0o755)
        self._master = Daemon("master", folder, self._java_home)
        try:
            self._master.wait_for(_STARTING)
            self.url = self._master.log().partition(_STARTING)[2].split()[0]
            self.complete()
        except BaseException:
            self.close()
            raise

    def complete(self) -> None:
        """Replace workers that have ended."""
        self.workers = [one for one in self.workers if one.process.poll() is None]
        while len(self.workers) < self._size:
            self.workers.append(self._start_worker())
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def wait_until_used(self) -> None:
        """Wait until every worker has run a task of a job that is running."""

        def check() -> bool:
            return all("pyspark.daemon" in worker.commands() for worker in self.workers)

        eventually(check, 60)

    def environment(self) -> dict[str, str]:
        """Return what a job has to be told to run here."""
        return {
            "TICKTHROTTLE_SPARK_MASTER": self.url,
            "TICKTHROTTLE_SPARK_CONF": json.dumps(self._options()),
            "PYSPARK_PYTHON": str(self.python),
        }

    def submit_command(self) -> list[str]:
        """Return the start of a ``spark-submit`` to this cluster."""
        options = [f"{name}={value}" for name, value in self._options().items()]
        conf = [part for option in options for part in ("--conf", option)]
        return [str(_HOME / "bin" / "spark-submit"), "--master", self.url, *conf]

    def _options(self) -> dict[str, str]:
        tmp = f"-Djava.io.tmpdir={self._sockets}"
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": f"{QUICK_OPTIONS} {tmp}",
            # Silence is noticed sooner than a user would want it.
            "spark.executor.heartbeatInterval": "1s",
            "spark.network.timeout": "6s",
            "spark.network.timeoutInterval": "1s",
            # What ran where is in here.
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self._events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }

    def executors_of_stages(self) -> list[list[str]]:
        """Return for every stage that has run on which executors its tasks ended."""
        stages: dict[tuple[str, int], list[str]] = {}
        for file in sorted(self._events.iterdir()):
            for line in file.read_text("utf-8").splitlines():
                if '"SparkListenerTaskEnd"' not in line[:40]:
                    continue
                with suppress(json.JSONDecodeError):
                    event = json.loads(line)
                    key = (file.name, int(event["Stage ID"]))
                    executor = event["Task Info"]["Executor ID"]
                    stages.setdefault(key, []).append(executor)
        return list(stages.values())

    def close(self) -> None:
        """End everything."""
        for daemon in (*self.workers, self._master):
            daemon.end()
        shutil.rmtree(self._sockets)

    def _start_worker(self) -> Daemon:
        name = f"worker{len(list(self._folder.glob('worker*')))}"
        size = ("--cores", "1", "--memory", "700m")
        work = ("--work-dir", str(self._folder / name / "work"))
        return Daemon(name, self._folder, self._java_home, *size, *work, self.url)


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Yield a cluster whose workers have registered; end it afterwards."""
    cluster = Cluster(folder, workers)
    try:
        yield cluster
    finally:
        cluster.close()
