"""What calls itself pure is: no client, no socket, no clock, no chance."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.package_graph import imports_of, name_of, sources, tree_of

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


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_a_pure_file_touches_nothing(path: Path) -> None:
    """The same arguments give the same answer, at once."""
    assert not {module.partition(".")[0] for module in imports_of(path)} & WORLD
    assert not CLOCKS & set(calls(tree_of(path)))


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_a_pure_file_draws_nothing_by_chance(path: Path) -> None:
    """A generator with a seed is an argument; the module's own functions are not."""
    drawn = {m for m in imports_of(path) if m.startswith("random.")}
    assert drawn <= {"random.Random"}
    for node in tree_of(path).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert "Random" not in set(calls(node)), "at import"


@pytest.mark.parametrize("path", [*sources()], ids=name_of)
def test_there_is_one_way_to_say_it(path: Path) -> None:
    """Whoever looks for the pure files finds all of them."""
    assert not OTHER_SPELLING.search(path.read_text("utf-8"))


def test_there_are_pure_files() -> None:
    """The rules are in them; a changed spelling would leave nothing to test."""
    assert len(PURE) >= 40
