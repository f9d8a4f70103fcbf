"""The kit judges our gateway, and finds each fault of a server that has one."""

import asyncio
from pathlib import Path

import pytest

from conformance.conformance_command import main
from conformance.server.judged_server import Server
from conformance.server.server_trials import judge_server
from conformance.server.signed_token import full_token
from conformance.trial_report import Report
from tests.conformance.faulty_proxy import FAULTS, FAULTS_OF_TOKENS, faulty
from tests.conformance.report import (
    PAGE,
    SERVER_CLAUSES,
    SERVERS,
    gateway_report,
    secret_file,
    table,
    written,
)
from tests.conformance.served import ISINS, served
from tests.conftest import PATIENCE
from tests.gateway.issuer import SECRET
from tests.ports import free_port

pytestmark = pytest.mark.redis


@pytest.mark.parametrize("kind", SERVERS)
def test_our_gateway_keeps_every_clause_that_is_tried(
    redis_url: str, kind: str
) -> None:
    report = gateway_report(redis_url, kind)
    assert report.is_clean, report.to_text()
    assert report.count("passed") >= 50, report.to_text()


def test_each_clause_is_tried_with_one_of_our_gateways(redis_url: str) -> None:
    """But for another epoch, which is no server's to begin at will."""
    reports = [gateway_report(redis_url, kind) for kind in SERVERS]
    tried = {c for one in reports for c, state in one.states().items() if "p" in state}
    assert set(SERVER_CLAUSES) - tried == {"S-17"}


def test_the_page_has_what_the_command_prints(redis_url: str) -> None:
    page = PAGE.read_text("utf-8")
    assert written(page, table(redis_url)) == page


async def through(url: str, fault: str | None, only: str, secret: str = "") -> Report:
    """Return the report of a gateway behind a line that has a fault, or none.

    Most faults are found with little patience. What has to come first, such as a bar
    that changes, may need all of it on a busy machine.
    """
    key = secret.encode()
    token = full_token(key) if key else ""
    for patience in (0.2, PATIENCE) if fault else (PATIENCE,):
        async with faulty(url, fault) as address:
            server = Server(address, tuple(ISINS), 3, patience, token, key)
            report = Report(address, SERVER_CLAUSES, await judge_server(server, only))
        if report.states()[only] == "failed":
            break
    return report


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


def test_each_fault_with_tokens_is_found(redis_url: str, tmp_path: Path) -> None:
    with served(redis_url, token_key_file=secret_file(tmp_path)) as url:
        for fault, (clause, _) in FAULTS_OF_TOKENS.items():
            sound = asyncio.run(through(url, None, clause, SECRET))
            assert sound.is_clean, sound.to_text()
            report = asyncio.run(through(url, fault, clause, SECRET))
            assert report.states()[clause] == "failed", f"{fault}: {report.to_text()}"


def test_where_no_server_is_the_command_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for url in (f"ws://127.0.0.1:{free_port()}/v1/stream", "http://x"):
        assert main(["server", url, "--keys", ISINS[0]]) == 2
        assert capsys.readouterr().err.startswith("tickthrottle-conformance: ")
