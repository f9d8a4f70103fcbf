"""Imports follow the direction of the data (docs/design.md)."""

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.package_graph import (
    FLOORS,
    MOST_IN_A_ROOM,
    files_in,
    floors_of,
    imports_of,
    module_of,
    name_of,
    room_of,
    sources,
    tree_of,
)
from tests.paths import ROOT
from tests.tidy import check

FOREIGN = {
    "ingest": set(),
    "throttle": {
        "ingest.redis_keys",
        "ingest.trade",
        "ingest.series",
        "ingest.market_hours",
        "ingest.instrument_table",
        "ingest.decimals",
        "ingest.settings",
        "ingest.tradelog",
        "ingest.kafka",
        "ingest.schemas",
        "ingest.process",
        "ingest.feed.receipt",
    },
    "archive": {
        "throttle.contract",
        "throttle.lease",
        "ingest.redis_keys",
        "ingest.trade",
        "ingest.settings",
        "ingest.process",
        "ingest.instrument_table",
        "ingest.kafka.address",
        "ingest.schemas",
        "ingest.tradelog.contract",
    },
    "gateway": {
        "archive.contract",
        "archive.parquet",
        "throttle.contract",
        "ingest.redis_keys",
        "ingest.trade",
        "ingest.series",
        "ingest.instrument_table",
        "ingest.market_hours",
        "ingest.settings",
        "ingest.statuses",
        "ingest.tradelog.contract",
        "ingest.kafka.address",
        "ingest.kafka.ends",
        "ingest.kafka.kafka_log_reader",
        "ingest.process",
    },
    "intake": {"ingest", "gateway"},
    "cli": {"ingest", "throttle", "archive", "gateway", "intake"},
    "conformance": set(),
    "loadtest": {
        *("ingest", "throttle.contract", "throttle.audit"),
        *("cli.local", "cli.commands.load_choices"),
    },
}
"""What a package may import of others."""

ONLY_IN = {
    "pyspark": {"throttle"},
    "psycopg": {"archive"},
    "fastapi": {"gateway", "intake"},
    "starlette": {"gateway"},
    "tickthrottle_client.tick_v1": {"cli", "gateway", "loadtest"},
    "tickthrottle_client": {
        *("ingest", "throttle", "archive", "gateway", "intake", "cli", "loadtest"),
        "conformance",
    },
}
# Spark's launcher reads the environment; the runner hands it on to its parts; systemd
# names its socket there.
MAY_TOUCH_ENVIRONMENT = {
    "cli/command_line.py",
    "throttle/spark/session.py",
    "cli/local/runner.py",
    "ingest/process/prometheus.py",
    "ingest/process/service_manager.py",
}
NOT_OURS_TO_IMPORT = {"tests", "bench"}
NOT_OURS_OF_THE_CLIENT = {
    "tickthrottle_client.tick_client",
    "tickthrottle_client.producer",
    "tickthrottle_client.redis_appender",
    "tickthrottle_client.topic_writer.TopicAppender",
}
LIBRARIES_OF_THE_CLIENT = {
    "tick_client.py": {"websockets"},
    "redis_address.py": {"redis"},
    "redis_appender.py": {"redis"},
    "redis_faults.py": {"redis"},
    "redis_primary.py": {"redis"},
    "kafka_client.py": {"confluent_kafka"},
    "topic_writer.py": {"confluent_kafka"},
    "rest_client.py": {"pandas", "polars", "pyarrow"},
}
"""Which files of the client need a library of others, each an extra but websockets."""


def is_within(module: str, allowed: set[str]) -> bool:
    """Tell whether a module is one of ``allowed`` or inside one."""
    return any(module == name or module.startswith(name + ".") for name in allowed)


def code() -> list[Path]:
    """Return the files of the product that hold code, not the marks of packages."""
    return [path for path in sources() if path.name != "__init__.py"]


def upward(path: Path) -> Iterator[str]:
    """Yield what a file imports of a room above its own."""
    for floor in floors_of(module_of(path)):
        rooms = FLOORS[floor]
        _, room = room_of(module_of(path), floor)
        # A room that is not on the plan may import none, nor be imported.
        below = rooms[: rooms.index(room) + 1] if room in rooms else ()
        for module in imports_of(path):
            is_of_floor = module.startswith(f"{floor}.")
            if is_of_floor and room_of(module, floor)[1] not in below:
                yield module


def foreign(path: Path) -> Iterator[str]:
    """Yield what a file imports of packages that are not for its own."""
    package, _ = room_of(module_of(path))
    for module in imports_of(path):
        other, _ = room_of(module)
        if other != package and other in FLOORS:
            if not is_within(module, FOREIGN[package]):
                yield module
        # What serves those who are not the product is not for the product.
        elif other in NOT_OURS_TO_IMPORT or is_within(module, NOT_OURS_OF_THE_CLIENT):
            yield module
        for library, homes in ONLY_IN.items():
            if is_within(module, {library}) and package not in homes:
                yield module


def test_a_file_imports_only_what_it_may() -> None:
    """Contracts flow downstream, from room to room and from package to package."""
    check(
        f"{name_of(path)}: imports {module}"
        for path in code()
        for module in (*upward(path), *foreign(path))
    )


def test_the_client_needs_nothing_of_the_product() -> None:
    """Whoever follows a stream installs the client and what it names, no more."""
    allowed = {"tickthrottle_client", *sys.stdlib_module_names}
    libraries = LIBRARIES_OF_THE_CLIENT
    check(
        f"{name_of(path)}: imports {module}"
        for path in sources("clients/python")
        for module in imports_of(path)
        if room_of(module)[0] not in allowed | libraries.get(path.name, set())
    )


def test_a_benchmark_imports_no_test() -> None:
    """Whoever measures needs the product, not its tests."""
    check(
        f"{name_of(path)}: imports {module}"
        for path in sources("bench")
        for module in imports_of(path)
        if room_of(module)[0] == "tests"
    )


def is_there(name: str) -> bool:
    """Tell whether a name out of a module can be imported."""
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute)
    except ImportError:
        return False


def test_a_benchmark_finds_what_it_imports() -> None:
    """Nothing else would tell that a name has changed."""
    check(
        f"{name_of(path)}: imports {name}"
        for path in sources("bench")
        for name in imports_of(path)
        if room_of(name)[0] in FLOORS and "." in name and not is_there(name)
    )


def misplaced(package: str) -> Iterator[str]:
    """Yield the rooms of a package that are not on the plan, not there or too full."""
    here = {
        path.stem
        for path in ROOT.joinpath(*package.split(".")).iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    rooms = set(FLOORS[package])
    for room in (here - {"__init__", "__pycache__"}) ^ rooms:
        yield f"{package}: {room} is on the plan or there, not both"
    for name, count in [
        (package, len(rooms)),
        *((f"{package}.{room}", files_in(package, room)) for room in rooms),
    ]:
        if count > MOST_IN_A_ROOM:
            yield f"{name}: holds {count}, at most {MOST_IN_A_ROOM}"


def test_every_room_is_on_the_plan_and_has_few_files() -> None:
    """A newcomer sees at a glance what a package and each room of it holds."""
    check(line for package in FLOORS for line in misplaced(package))


def test_the_environment_is_read_through_settings() -> None:
    """A setting has one place: nothing else looks into the environment."""
    check(
        f"{name_of(path)}: reads the environment"
        for path in sources()
        if name_of(path) not in MAY_TOUCH_ENVIRONMENT
        and (
            imports_of(path) & {"os.environ", "os.getenv"}
            or attributes_of(path) & {"environ", "getenv"}
        )
    )


def attributes_of(path: Path) -> set[str]:
    """Return the names that a file reads of objects."""
    return {n.attr for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute)}


def test_package_files_are_empty() -> None:
    """No code hides in __init__.py."""
    marks = [path for path in sources() if path.name == "__init__.py"]
    assert marks
    check(name_of(path) for path in marks if path.read_text("utf-8"))
