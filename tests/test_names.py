"""No two modules and no two public classes of the product share a name."""

import ast
from collections import defaultdict

from tests.package_graph import name_of, sources, tree_of

# A process has its settings and its metrics.
SHARED_MODULES = {"settings", "metrics", "__init__", "__main__"}
# A command's file has the name of the command.
COMMANDS = "deploy/commands/"


def test_no_two_modules_share_a_name() -> None:
    """Who reads a module's name knows which one is meant."""
    files = defaultdict(list)
    for path in (*sources(), *sources("clients/python")):
        if not name_of(path).startswith(COMMANDS):
            files[path.stem].append(name_of(path))
    twice = {stem: paths for stem, paths in files.items() if len(paths) > 1}
    assert not twice.keys() - SHARED_MODULES, twice


def test_no_two_public_classes_share_a_name() -> None:
    """Who reads a class's name knows which one is meant."""
    files = defaultdict(list)
    for path in (*sources(), *sources("clients/python")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(name_of(path))
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert not twice, twice
