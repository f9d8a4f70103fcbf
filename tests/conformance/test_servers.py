"""The kit judges our gateway, and finds each fault of a server that has one."""

import asyncio

import pytest

from conformance.conformance_command import main
from conformance.server.server_checks import Server, judge_server
from conformance.trial_report import Report
from tests.conformance.faulty_proxy import FAULTS, faulty
from tests.conformance.report import (
    PAGE,
    SERVER_CLAUSES,
    gateway_report,
    table,
    written,
)
from tests.conformance.served import ISINS, served
from tests.conftest import PATIENCE
from tests.ports import free_port

pytestmark = pytest.mark.redis


def test_our_gateway_keeps_every_clause_that_is_tried(redis_url: str) -> None:
    report = gateway_report(redis_url)
    assert report.is_clean, report.to_text()
    assert report.count("passed") >= 40, report.to_text()


def test_the_page_has_what_the_command_prints(redis_url: str) -> None:
    page = PAGE.read_text("utf-8")
    assert written(page, table(redis_url)) == page


async def through(url: str, fault: str | None, only: str) -> Report:
    """Return the report of a gateway behind a line that has a fault, or none."""
    async with faulty(url, fault) as address:
        server = Server(address, tuple(ISINS), 3, 0.2 if fault else PATIENCE)
        return Report(address, SERVER_CLAUSES, await judge_server(server, only))


def test_each_fault_of_a_server_is_found(redis_url: str) -> None:
    """By its clause; through the same line without a fault nothing is."""
    assert len(FAULTS) >= 20
    with served(redis_url) as url:
        for clause in sorted({clause for clause, _ in FAULTS.values()}):
            sound = asyncio.run(through(url, None, clause))
            assert sound.is_clean, sound.to_text()
        for fault, (clause, _) in FAULTS.items():
            report = asyncio.run(through(url, fault, clause))
            assert report.states()[clause] == "failed", f"{fault}: {report.to_text()}"


def test_where_no_server_is_the_command_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for url in (f"ws://127.0.0.1:{free_port()}/v1/stream", "http://x"):
        assert main(["server", url, "--keys", ISINS[0]]) == 2
        assert capsys.readouterr().err.startswith("tickthrottle-conformance: ")
