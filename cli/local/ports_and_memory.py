"""What a run needs of its machine: two ports, and memory."""

from contextlib import suppress
from pathlib import Path

import psutil

from cli.local.settings import RunSettings
from ingest.process.ports import why_taken

LEAST_BYTES = 1_000_000_000
"""A machine, or a container, of less memory starts no run: Java would be killed."""

NEEDED_BYTES = {False: 1_400_000_000, True: 2_200_000_000}
"""What a run takes in its first minutes, without and with the analytics job."""

ANOTHER_PORT = "another one: --port, or make run PORT="

_LIMITS_OF_A_GROUP = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class RunFailed(RuntimeError):
    """The pipeline cannot start or go on; the message says why, and what to do."""


def check_ports(settings: RunSettings) -> None:
    """Check that the pages' ports are free. Raises RunFailed."""
    page, operators = settings.port, settings.port_for_operators
    if (reason := why_taken(page)) is not None:
        raise RunFailed(f"port {page}: {reason}; choose {ANOTHER_PORT}")
    if (reason := why_taken(operators)) is not None:
        raise RunFailed(
            f"port {operators} (operators' page): {reason}; choose {ANOTHER_PORT}, "
            "or TICKTHROTTLE_OPERATORS_PORT for this one alone"
        )


def lacking_memory(has_analytics: bool) -> str | None:
    """Return a warning where less memory is free than a run will take."""
    available = psutil.virtual_memory().available + psutil.swap_memory().free
    free, needed = min(available, _limit_of_group()), NEEDED_BYTES[has_analytics]
    if free >= needed:
        return None
    rest = "; --analytics off needs 0.8 GB less" if has_analytics else ""
    return f"{free / 1e9:.1f} GB are free, a run takes {needed / 1e9:.1f} GB{rest}"


def check_memory() -> None:
    """Check that there is memory for a run at all. Raises RunFailed."""
    most = min(psutil.virtual_memory().total, _limit_of_group())
    if most < LEAST_BYTES:
        raise RunFailed(
            f"memory: there are {most / 1e6:,.0f} MB here, of this machine or this "
            f"container; a run needs {NEEDED_BYTES[False] / 1e9:.1f} GB, and "
            f"{NEEDED_BYTES[True] / 1e9:.1f} GB with the analytics job"
        )


def _limit_of_group() -> int:
    """Return how much memory this container may use; a huge number without a limit."""
    for file in _LIMITS_OF_A_GROUP:
        with suppress(OSError, ValueError):
            return int(file.read_text("ascii"))
    return 2**63
