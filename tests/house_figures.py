"""Prints how large the house is; ``python -m tests.house_figures``.

With ``--lines`` only what ``make check`` prints: the lines of Python, and the budget.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from cli.command_line import app
from cli.commands.unknown_variables import variables
from tests.paths import ROOT

BUDGET = 62_000
"""Lines of Python that the product, its benchmarks and its packaging may have."""


def lines_of(*suffixes: str, tests: bool = False) -> int:
    """Return how many lines the files of the repository have, with or without tests."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    paths = [Path(name) for name in listed.split("\0") if name.endswith(suffixes)]
    chosen = [ROOT / path for path in paths if (path.parts[0] == "tests") == tests]
    return sum(path.read_bytes().count(b"\n") for path in chosen if path.exists())


def options(
    command: TyperGroup | TyperCommand, name: str = ""
) -> Iterator[tuple[str, int]]:
    """Yield the name of each command under one, and how many options it has."""
    if isinstance(command, TyperGroup):
        for own_name, inner in command.commands.items():
            yield from options(inner, f"{name} {own_name}".strip())
        return
    yield name, sum(isinstance(one, TyperOption) for one in command.params)


def print_figures() -> None:
    """Print all of them, a line each."""
    of_commands = dict(options(typer.main.get_command(app)))
    figures = {
        f"lines of Python without tests, of {BUDGET:,}": lines_of(".py"),
        "lines of Python of tests": lines_of(".py", tests=True),
        "lines of JavaScript": lines_of(".js"),
        "settings": len(variables()),
        "options of commands, without load": sum(of_commands.values())
        - of_commands["load"],
        "options of load": of_commands["load"],
    }
    for name, figure in figures.items():
        sys.stdout.write(f"{figure:>8,}  {name}\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--lines"]:
        lines = lines_of(".py")
        sys.stdout.write(f"{lines:,} lines of Python without tests, of {BUDGET:,}\n")
    else:
        print_figures()
