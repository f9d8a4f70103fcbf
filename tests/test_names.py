"""No two modules and no two public classes of the product share a name."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.package_graph import name_of, sources, tree_of
from tests.tidy import check

# A process has its settings and its metrics.
SHARED_MODULES = {"settings", "metrics", "__init__", "__main__"}
# A command's file has the name of the command.
COMMANDS = "cli/commands/"


SAYS_NOTHING = {"utils", "common", "helpers", "manager", "core"}
CODE = [*sources(), *sources("clients/python")]


def shared(files: Iterable[tuple[str, Path]]) -> Iterator[str]:
    """Yield the names that stand for several files."""
    paths = defaultdict(list)
    for name, path in files:
        paths[name].append(name_of(path))
    for name, places in paths.items():
        if len(places) > 1:
            yield f"{name}: {', '.join(places)}"


def public_classes(path: Path) -> Iterator[str]:
    """Yield the names of a file's classes, wherever in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_two_modules_share_a_name() -> None:
    """Who reads a module's name knows which one is meant."""
    check(
        shared(
            (path.stem, path)
            for path in CODE
            if path.stem not in SHARED_MODULES
            and not name_of(path).startswith(COMMANDS)
        )
    )


def test_no_two_public_classes_share_a_name() -> None:
    """Who reads a class's name knows which one is meant."""
    check(shared((name, path) for path in CODE for name in public_classes(path)))


def test_a_modules_name_says_something() -> None:
    """No file is called utils."""
    check(name_of(path) for path in CODE if path.stem in SAYS_NOTHING)
