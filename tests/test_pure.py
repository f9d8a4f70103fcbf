"""What calls itself pure is: no client, no socket, no clock, no chance."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.package_graph import imports_of, name_of, sources, tree_of
from tests.tidy import check

WORLD = {
    "aiohttp",
    "asyncio",
    "confluent_kafka",
    "redis",
    "socket",
    "subprocess",
    "threading",
    "time",
}
"""Modules through which a file would touch something other than its arguments."""

CLOCKS = {"now", "utcnow", "today"}
OTHER_SPELLING = re.compile(r"PURE|Pure:|[Nn]o I/O")


def docstring(path: Path) -> str:
    """Return a file's docstring, empty if it has none."""
    return ast.get_docstring(tree_of(path)) or ""


def is_pure(path: Path) -> bool:
    """Tell whether a file says so: `Pure.` begins or ends its first paragraph."""
    words = docstring(path).split("\n\n")[0].split()
    return "Pure." in (*words[:1], *words[-1:])


def calls(node: ast.AST) -> Iterator[str]:
    """Yield the name of every function that is called, without what it belongs to."""
    for call in ast.walk(node):
        match call:
            case ast.Call(ast.Attribute(attr=name)) | ast.Call(ast.Name(id=name)):
                yield name


PURE = [path for path in (*sources(), *sources("clients/python")) if is_pure(path)]


def touched(path: Path) -> Iterator[str]:
    """Yield what a file uses that differs from call to call."""
    yield from {module.partition(".")[0] for module in imports_of(path)} & WORLD
    yield from CLOCKS & set(calls(tree_of(path)))


def drawn(path: Path) -> Iterator[str]:
    """Yield where a file takes numbers by chance, but for a generator with a seed."""
    yield from {m for m in imports_of(path) if m.startswith("random.")} - {
        "random.Random"
    }
    for node in tree_of(path).body:
        is_statement = not isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_statement and "Random" in set(calls(node)):
            yield "Random at import"


def test_a_pure_file_touches_nothing() -> None:
    """The same arguments give the same answer, at once."""
    check(f"{name_of(path)}: {name}" for path in PURE for name in touched(path))


def test_a_pure_file_draws_nothing_by_chance() -> None:
    """A generator with a seed is an argument; the module's own functions are not."""
    check(f"{name_of(path)}: {name}" for path in PURE for name in drawn(path))


def test_there_is_one_way_to_say_it() -> None:
    """Whoever looks for the pure files finds all of them."""
    check(
        f"{name_of(path)}: {match[0]}"
        for path in sources()
        for match in OTHER_SPELLING.finditer(path.read_text("utf-8"))
    )


def test_there_are_pure_files() -> None:
    """The rules are in them; a changed spelling would leave nothing to test."""
    assert len(PURE) >= 40
