"""How the inspecting commands print: tables for people, JSON for programs.

Whatever came from outside is shown with its control characters escaped: a dead
letter must not be able to write to the terminal of whoever looks at it.
"""

import sys
from collections.abc import Callable, Iterable
from json import dumps
from typing import Any, TypeVar

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tickthrottle_client.harmless_text import harmless

T = TypeVar("T")

# Into a pipe a line is a line, however long.
_PIPE_WIDTH = 100_000


def print_json(value: Any) -> None:
    """Print one JSON object on a line of its own; bytes are JSON already."""
    text = value if isinstance(value, bytes) else orjson.dumps(value)
    typer.echo(json_line(text))


def json_line(text: bytes) -> bytes:
    """Return JSON in one line, with what could act on a terminal as an escape of JSON.

    Outside of texts that is white space, and inside there is no end of a line.
    """
    line = text.replace(b"\n", b" ").replace(b"\r", b" ").replace(b"\t", b" ")
    shown = line.decode("utf-8", "backslashreplace")
    if shown.isprintable():
        return line
    return "".join(c if c.isprintable() else dumps(c)[1:-1] for c in shown).encode()


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; columns whose name ends with ``#`` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Any = "right" if column.endswith("#") else "left"
        table.add_column(column.removesuffix("#"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width, highlight=False)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        typer.echo(line.rstrip())


def print_items(
    items: Iterable[T],
    as_json: bool,
    encode: Callable[[T], Any],
    columns: Iterable[str],
    cells: Callable[[T], Iterable[object]],
) -> None:
    """Print items, one a line: as JSON objects, or as the rows of a table."""
    if as_json:
        for item in items:
            print_json(encode(item))
    else:
        print_table(columns, map(cells, items))


def shorten(value: object, most: int = 120) -> str:
    """Return a harmless text of at most ``most`` characters."""
    text = harmless(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."
