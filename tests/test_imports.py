"""Imports follow the direction of the data (docs/design.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ingest", "throttle", "gateway", "deploy")
LOAD = "bench/load"

THROTTLE_CONTRACTS = {
    "throttle.cut",
    "throttle.ledger",
    "throttle.letters",
    "throttle.snapshot",
}
ALLOWED = {
    "ingest": {"ingest"},
    "throttle": {
        "throttle",
        "ingest.collector",
        "ingest.exposition",
        "ingest.process_settings",
        "ingest.trade",
        "ingest.log",
        "ingest.receipt",
        "ingest.masking",
        "ingest.redis_keys",
        "ingest.redis_log",
        "ingest.kafka",
        "ingest.kafka_address",
        "ingest.kafka_reader",
        "ingest.kafka_settings",
    },
    "gateway": {
        "gateway",
        "ingest.exposition",
        "ingest.process_settings",
        "ingest.trade",
        "ingest.log",
        "ingest.masking",
        "ingest.redis_keys",
        "ingest.kafka_address",
        "ingest.kafka_ends",
        "ingest.kafka_settings",
        *THROTTLE_CONTRACTS,
    },
    "deploy": set(PACKAGES),
    "bench": {"bench.load", "ingest", "gateway", "deploy", *THROTTLE_CONTRACTS},
}
# The command line, alone, leads to the load test.
MAY_IMPORT_LOAD = {"deploy/load.py"}
ONLY_IN = {"pyspark": {"throttle"}, "fastapi": {"gateway"}, "starlette": {"gateway"}}
# Spark's launcher reads the environment; the runner hands it on to its parts.
MAY_TOUCH_ENVIRONMENT = {"throttle/session.py", "deploy/local.py"}


def sources() -> Iterator[Path]:
    """Yield every source file of the product."""
    for package in (*PACKAGES, LOAD):
        yield from sorted((ROOT / package).rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Return the modules a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_within(module: str, allowed: set[str]) -> bool:
    """Tell whether a module is one of ``allowed`` or inside one."""
    return any(module == name or module.startswith(name + ".") for name in allowed)


@pytest.mark.parametrize(
    "path", list(sources()), ids=lambda p: str(p.relative_to(ROOT))
)
def test_a_file_imports_only_what_it_may(path: Path) -> None:
    """Contracts flow downstream; Spark and FastAPI stay in their packages."""
    name = path.relative_to(ROOT).as_posix()
    package = name.split("/", 1)[0]
    for module in imports_of(path):
        if module.split(".")[0] in PACKAGES:
            assert is_within(module, ALLOWED[package]), f"{name} imports {module}"
        for library, homes in ONLY_IN.items():
            if is_within(module, {library}):
                assert package in homes, f"{name} imports {module}"
        assert not is_within(module, {"tests"}), f"{name} imports {module}"
        if package != "bench" and name not in MAY_IMPORT_LOAD:
            assert not is_within(module, {"bench"}), f"{name} imports {module}"


@pytest.mark.parametrize(
    "path", list(sources()), ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_environment_is_read_through_settings(path: Path) -> None:
    """A setting has one place: nothing else looks into the environment."""
    name = path.relative_to(ROOT).as_posix()
    if name not in MAY_TOUCH_ENVIRONMENT:
        reads = imports_of(path) & {"os.environ", "os.getenv"}
        names = ast.walk(ast.parse(path.read_text("utf-8")))
        attributes = {n.attr for n in names if isinstance(n, ast.Attribute)}
        assert not reads, name
        assert not attributes & {"environ", "getenv"}, name


def test_package_files_are_empty_and_names_say_something() -> None:
    """No code hides in __init__.py, no file is called utils."""
    for path in sources():
        if path.name == "__init__.py":
            assert path.read_text("utf-8") == "", path
        assert path.stem not in {"utils", "common", "helpers", "manager", "core"}
