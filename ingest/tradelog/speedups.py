"""The compiled package, where it is installed; all that it does, Python does too."""

from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any

DISTRIBUTION = "tickthrottle-speedups"
_INTERFACE = 1


@cache
def find_speedups() -> Any:
    """Return the compiled module, None where it is not installed, or is another one."""
    with suppress(ImportError):
        import tickthrottle_speedups

        if getattr(tickthrottle_speedups, "INTERFACE", 0) == _INTERFACE:
            return tickthrottle_speedups
    return None


def speedups_version() -> str:
    """Return the version of the compiled module, empty where there is none."""
    return version(DISTRIBUTION) if find_speedups() else ""
