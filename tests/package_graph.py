"""The rooms of the product and who imports whom; ``python -m tests.package_graph``.

A room is a sub-package, or a file that lies in a package itself. ``FLOORS`` names the
rooms of each package from the ground up: a room imports rooms before it, never one
after it, so there is no circle.
"""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.paths import ROOT

FLOORS = {
    "ingest": (
        "redis_keys",
        "decimals",
        "trade",
        "series",
        "market_hours",
        "tradelog",
        "statuses",
        "kafka",
        "schemas",
        "settings",
        "process",
        "files",
        "instrument_table",
        "records",
        "conditions",
        "sources",
        "feed",
        "adapters",
        "exchanges",
    ),
    "throttle": (
        "settings",
        "contract",
        "window",
        "lease",
        "standing",
        "publish",
        "telemetry",
        "watch",
        "spark",
        "leadership",
        "job",
        "analytics",
        "prepare",
        "audit",
        "describe",
        "testing",
        "backtest",
    ),
    "throttle.analytics": (
        "partials",
        "batch_bars",
        "tumbling_bars",
        "product_publisher",
        "product_sink",
        "product",
        "bars",
        "movers",
        "bursts",
        "moves",
        "products",
        "product_query",
        "metrics",
        "analytics_job",
    ),
    "archive": (
        "settings",
        "contract",
        "describe",
        "account",
        "instrument_versions",
        "parquet",
        "storing",
        "log_copy",
        "archive_metrics",
        "archiver",
        "postgres",
        "topics",
        "archive_process",
        "playback",
    ),
    "gateway": (
        "trusted_proxies",
        "settings",
        "protocol",
        "positions",
        "admission",
        "named_files",
        "stream",
        "http",
        "upstream",
        "transport",
        "health",
        "workers",
        "live_stream",
        "health_monitor",
        "backend",
        "rest",
        "operators",
        "app",
        "server",
        "supervisor",
    ),
    "intake": (
        "settings",
        "bodies",
        "posted_statuses",
        "room",
        "waiting_requests",
        "remembered",
        "intake_app",
        "intake_server",
    ),
    "cli": (
        "logs",
        "local",
        "examples",
        "commands",
        "terminal",
        "archive_command",
        "key_command",
        "verify_command",
        "command_line",
    ),
    "conformance": (
        "clauses",
        "trial_report",
        "specified_chain",
        "client",
        "server",
        "drivers",
        "conformance_command",
    ),
    "loadtest": (
        "results",
        "figures",
        "client_mix",
        "scenarios",
        "thresholds",
        "system",
        "feed",
        "plan",
        "judge",
        "clients",
        "report",
        "load_session",
        "load_run",
        "command",
    ),
}
"""Every room of every package, each before those that may import it.

A room that has rooms itself stands here a second time, with its full name.
"""

PACKAGES = tuple(package for package in FLOORS if "." not in package)

MOST_IN_A_ROOM = 20


def sources(*packages: str) -> Iterator[Path]:
    """Yield every source file of some packages, of all without a name."""
    for package in packages or PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return a file's path from the project's folder."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a source file's syntax tree, read once."""
    # Hypothesis runs code of its own at every collection of garbage; in the middle of
    # parsing, Python 3.11 takes that for a fault.
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the modules a file imports, wherever in it, and the names out of them."""
    imported: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(imported)


def room_of(module: str, floor: str | None = None) -> tuple[str, str]:
    """Return the package and the room of a module, or of a name out of one.

    ``floor`` is a package of ``FLOORS`` to look in, by default the outermost.
    """
    package = floor or module.partition(".")[0]
    return package, module.removeprefix(f"{package}.").partition(".")[0]


def floors_of(module: str) -> list[str]:
    """Return every package of ``FLOORS`` that a module lies in, the outermost first."""
    return [package for package in FLOORS if module.startswith(f"{package}.")]


def module_of(path: Path) -> str:
    """Return the name a file is imported under."""
    return name_of(path).removesuffix(".py").replace("/", ".")


def arrows() -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Return which rooms each room imports, its own and foreign packages' left out."""
    graph = defaultdict(set)
    for path in sources():
        if path.name == "__init__.py":
            continue
        for floor in floors_of(module_of(path)):
            here = room_of(module_of(path), floor)
            for module in imports_of(path):
                is_inside = module.startswith(f"{floor}.")
                there = room_of(module, floor if is_inside else None)
                if there[0] in FLOORS and there != here:
                    graph[here].add(there)
    return graph


def files_in(package: str, room: str) -> int:
    """Return how many files a room holds; a file that is a room by itself is one."""
    folder = ROOT.joinpath(*package.split("."), room)
    if not folder.is_dir():
        return 1
    return sum(path.name != "__init__.py" for path in folder.glob("*.py"))


def print_graph() -> None:
    """Print every room, how many files it holds, and what it imports."""
    graph = arrows()
    for package, rooms in FLOORS.items():
        print(f"{package}: {len(rooms)} rooms")
        for room in rooms:
            within = sorted(r for p, r in graph[package, room] if p == package)
            beyond = sorted(f"{p}.{r}" for p, r in graph[package, room] if p != package)
            print(f"  {room} ({files_in(package, room)}): {' '.join(within + beyond)}")


if __name__ == "__main__":
    print_graph()
