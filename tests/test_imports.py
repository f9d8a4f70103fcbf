"""Imports follow the direction of the data (docs/design.md)."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

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

FOREIGN = {
    "ingest": set(),
    "throttle": {
        "ingest.trade",
        "ingest.issue_table",
        "ingest.decimals",
        "ingest.wire_form",
        "ingest.settings",
        "ingest.tradelog",
        "ingest.kafka",
        "ingest.process",
        "ingest.feed.receipt",
    },
    "archive": {
        "throttle.contract",
        "throttle.lease",
        "ingest.settings",
        "ingest.process",
        "ingest.issue_table",
        "ingest.tradelog.contract",
    },
    "gateway": {
        "archive.contract",
        "archive.parquet",
        "throttle.contract",
        "ingest.trade",
        "ingest.issue_table",
        "ingest.market_hours",
        "ingest.settings",
        "ingest.tradelog.contract",
        "ingest.tradelog.redis_positions",
        "ingest.kafka.address",
        "ingest.kafka.ends",
        "ingest.kafka.kafka_log_reader",
        "ingest.process",
    },
    "intake": {"ingest", "gateway"},
    "deploy": {"ingest", "throttle", "archive", "gateway", "intake"},
}
"""What a package may import of others."""

ONLY_IN = {
    "pyspark": {"throttle"},
    "psycopg": {"archive"},
    "fastapi": {"gateway", "intake"},
    "starlette": {"gateway"},
    "tickthrottle_client.tick_v1": {"gateway", "deploy"},
    "tickthrottle_client": {"ingest", "throttle", "gateway", "intake", "deploy"},
}
# Spark's launcher reads the environment; the runner hands it on to its parts; systemd
# names its socket there.
MAY_TOUCH_ENVIRONMENT = {
    "throttle/spark/session.py",
    "deploy/local/runner.py",
    "ingest/process/prometheus.py",
    "ingest/process/service_manager.py",
}
NOT_OURS_TO_IMPORT = {"tests", "bench"}
NOT_OURS_OF_THE_CLIENT = {
    f"tickthrottle_client.{name}"
    for name in ("tick_client", "producer", "redis_appender", "topic_appender")
}
LIBRARIES_OF_THE_CLIENT = {
    "tick_client.py": "websockets",
    "redis_address.py": "redis",
    "redis_appender.py": "redis",
    "redis_faults.py": "redis",
    "redis_primary.py": "redis",
    "kafka_client.py": "confluent_kafka",
    "topic_writer.py": "confluent_kafka",
}
"""Which files of the client need a library of others, each an extra but websockets."""


def is_within(module: str, allowed: set[str]) -> bool:
    """Tell whether a module is one of ``allowed`` or inside one."""
    return any(module == name or module.startswith(name + ".") for name in allowed)


def is_inside(path: Path) -> bool:
    """Tell whether a file is code of a room, not the mark of a package."""
    return path.name != "__init__.py"


@pytest.mark.parametrize("path", [*filter(is_inside, sources())], ids=name_of)
def test_a_file_imports_only_what_it_may(path: Path) -> None:
    """Contracts flow downstream, from room to room and from package to package."""
    for floor in floors_of(module_of(path)):
        rooms = FLOORS[floor]
        _, room = room_of(module_of(path), floor)
        for module in imports_of(path):
            if module.startswith(f"{floor}."):
                _, its_room = room_of(module, floor)
                assert rooms.index(its_room) <= rooms.index(room), f"imports {module}"
    package, _ = room_of(module_of(path))
    for module in imports_of(path):
        other, _ = room_of(module)
        if other != package and other in FLOORS:
            assert is_within(module, FOREIGN[package]), f"imports {module}"
        assert other not in NOT_OURS_TO_IMPORT, f"imports {module}"
        for library, homes in ONLY_IN.items():
            assert not is_within(module, {library}) or package in homes, module
        # What serves those who are not the product is not for the product.
        assert not is_within(module, NOT_OURS_OF_THE_CLIENT), module


@pytest.mark.parametrize("path", [*sources("clients/python")], ids=name_of)
def test_the_client_needs_nothing_of_the_product(path: Path) -> None:
    """Whoever follows a stream installs the client and what it names, no more."""
    others = {room_of(module)[0] for module in imports_of(path)}
    library = {LIBRARIES_OF_THE_CLIENT.get(path.name, "tickthrottle_client")}
    assert others - sys.stdlib_module_names <= {"tickthrottle_client", *library}


@pytest.mark.parametrize("path", [*sources("bench")], ids=name_of)
def test_a_benchmark_imports_no_test(path: Path) -> None:
    """Whoever measures needs the product, not its tests."""
    for module in imports_of(path):
        assert room_of(module)[0] != "tests", f"imports {module}"


@pytest.mark.parametrize("path", [*sources("bench")], ids=name_of)
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    """Nothing else would tell that a name has changed."""
    for name in imports_of(path):
        package, _, attribute = name.rpartition(".")
        if package.partition(".")[0] in FLOORS:
            assert hasattr(import_module(package), attribute), f"imports {name}"


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_is_on_the_plan_and_has_few_files(package: str) -> None:
    """A newcomer sees at a glance what a package and each room of it holds."""
    here = {
        path.stem
        for path in ROOT.joinpath(*package.split(".")).iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    assert here - {"__init__", "__pycache__"} == set(FLOORS[package])
    assert len(FLOORS[package]) <= MOST_IN_A_ROOM
    for room in FLOORS[package]:
        assert files_in(package, room) <= MOST_IN_A_ROOM, room


@pytest.mark.parametrize("path", [*sources()], ids=name_of)
def test_the_environment_is_read_through_settings(path: Path) -> None:
    """A setting has one place: nothing else looks into the environment."""
    if name_of(path) not in MAY_TOUCH_ENVIRONMENT:
        names = ast.walk(tree_of(path))
        attributes = {n.attr for n in names if isinstance(n, ast.Attribute)}
        assert not imports_of(path) & {"os.environ", "os.getenv"}
        assert not attributes & {"environ", "getenv"}


def test_package_files_are_empty_and_names_say_something() -> None:
    """No code hides in __init__.py, no file is called utils."""
    for path in sources():
        if path.name == "__init__.py":
            assert path.read_text("utf-8") == "", path
        assert path.stem not in {"utils", "common", "helpers", "manager", "core"}
