"""Judges all that is in the repository: ``python -m tests.conformance.report``.

It writes the table into docs/conformance.md.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from conformance.clauses import is_of_clients, read_clauses
from conformance.conformance_command import read_transcripts, report_of_client
from conformance.trial_report import Report, markdown_table
from tests.conformance.drivers import go_driver, node_driver, python_driver
from tests.conftest import PATIENCE
from tests.paths import ROOT

PAGE = ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- report -->\n", "<!-- end -->\n"

CLIENTS: dict[str, Callable[[], list[str]]] = {
    "tick.js": node_driver,
    "asyncio": python_driver,
    "blocking": lambda: python_driver("blocking"),
    "go": lambda: go_driver(Path(mkdtemp(prefix="tickthrottle-go-"))),
}


@cache
def client_report(name: str) -> Report:
    """Return the report of a client, made once."""
    clauses = [one for one in read_clauses() if is_of_clients(one)]
    command = CLIENTS[name]()
    return asyncio.run(report_of_client(command, read_transcripts(), clauses, PATIENCE))


def table() -> str:
    """Return the table of the page."""
    return markdown_table([client_report(name).to_json() for name in CLIENTS])


def written(page: str, text: str) -> str:
    """Return a page with another table."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


if __name__ == "__main__":
    page = written(PAGE.read_text("utf-8"), table())
    PAGE.write_text(page, "utf-8")
    sys.stdout.write(page.partition(BEGIN)[2].partition(END)[0])
