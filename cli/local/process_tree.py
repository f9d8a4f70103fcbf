"""Which processes a part of the pipeline consists of, by name."""

from contextlib import suppress
from typing import NamedTuple

import psutil


class Named(NamedTuple):
    """A process and what it is called in reports."""

    name: str
    process: psutil.Process


def members(name: str, pid: int) -> list[Named]:
    """Return a process under a name; nothing if there is none any more."""
    with suppress(psutil.NoSuchProcess):
        return [Named(name, psutil.Process(pid))]
    return []


def job_family(name: str, pid: int) -> list[Named]:
    """Return a Spark job's driver, its JVM and its Python workers, those there are.

    They are called ``<name> driver``, ``<name> JVM`` and ``<name> worker``; a worker
    process starts others, so the last name may come several times.
    """
    found: list[Named] = []
    with suppress(psutil.NoSuchProcess):
        driver = psutil.Process(pid)
        found.append(Named(f"{name} driver", driver))
        for child in driver.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                kind = "JVM" if child.name() == "java" else "worker"
                found.append(Named(f"{name} {kind}", child))
    return found
