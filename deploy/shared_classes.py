"""Lets a broker start in half the time: keeps what Java made of Kafka's classes.

Java can write the classes it has loaded, checked and linked into one file and begin
with that file the next time. Only the Java that wrote the file uses it; any other
ignores it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.broker import ARCHIVE, JARS, Broker, BrokerFailed, BrokerMissing


class NotWritten(RuntimeError):
    """Java did not write the file; a broker starts without it, only later."""


def write_archive(jars: Path = JARS) -> Path:
    """Run a broker once and keep its classes beside the jars. Raises NotWritten."""
    archive = jars / ARCHIVE
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="tt-") as name:
        folder = Path(name)
        classes = folder / "classes"
        listing = f"-XX:DumpLoadedClassList={classes}"
        with Broker(folder / "broker", more_java_options=[listing], jars=jars):
            pass
        writing = [
            "-Xshare:dump",
            f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={archive}",
        ]
        broker = Broker(folder / "broker", more_java_options=writing, jars=jars)
        done = subprocess.run(
            broker.command("kafka.Kafka"), env={}, capture_output=True, text=True
        )
    if done.returncode != 0 or not archive.exists():
        raise NotWritten(f"Java wrote no {archive}: {done.stderr[-500:]}")
    return archive


if __name__ == "__main__":
    try:
        write_archive()
    except NotWritten as error:
        sys.stderr.write(f"tickthrottle: {error}\n")
    except (BrokerFailed, BrokerMissing) as error:
        sys.exit(f"tickthrottle: {error}")
