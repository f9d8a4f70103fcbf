"""Builds the programs in Java with Maven, once."""

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
_BUILT = HERE / "build" / "built"


def build() -> None:
    """Build what has changed. Raises SystemExit where there is no Maven or no JDK."""
    missing = what_is_missing()
    if missing is not None:
        raise SystemExit(missing)
    sources = [HERE / "pom.xml", *HERE.glob("*/pom.xml"), *HERE.glob("*/src/**/*.java")]
    newest = max(path.stat().st_mtime for path in sources)
    if _BUILT.exists() and _BUILT.stat().st_mtime >= newest:
        return
    command = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", "package"]
    done = subprocess.run(
        command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"Maven has failed:\n{done.stdout[-2_000:]}")
    _BUILT.parent.mkdir(exist_ok=True)
    _BUILT.touch()


def what_is_missing() -> str | None:
    """Return a sentence that says what there must be and is not."""
    if shutil.which("mvn") is None:
        return (
            "Kafka Streams and Flink are fetched with Maven, and there is no mvn (on "
            "Debian: apt install maven)"
        )
    if java("javac") is None:
        return "the programs for Kafka Streams and Flink need a JDK of Java 17 or newer"
    return None


def java(program: str = "java") -> str | None:
    """Return a program of the Java that Maven uses, None if it is not there."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(program, path=home and f"{home}/bin")


def java_version() -> str:
    done = subprocess.run([str(java()), "--version"], capture_output=True, text=True)
    return " ".join(done.stdout.split()[:2])


def class_path(folder: str) -> str:
    built = HERE / folder / "build"
    return os.pathsep.join((str(built / "classes"), str(built / "lib" / "*")))
