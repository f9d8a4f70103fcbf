"""Parameters that nothing reads are refused, on every route of both ports."""

import json

import pytest

from gateway.http.parameters import find_fault
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway

KNOWN = ["isins", "codes", "market"]


def test_a_fault_is_told_with_what_may_be_meant() -> None:
    """A name that is nearly right is put right."""
    for names, fault in [
        ([], None),
        (["isins", "market"], None),
        (["isin"], "isin: no such parameter; is isins meant?"),
        (["MARKETS"], "MARKETS: no such parameter; there are isins, codes, market"),
        (["market", "q"], "q: no such parameter; there are isins, codes, market"),
        (["isins", "isins"], "isins: is there 2 times"),
        (
            ["x" * 99],
            f"{'x' * 60}...: no such parameter; there are isins, codes, market",
        ),
    ]:
        assert find_fault(KNOWN, names) == fault


def test_where_there_are_none_it_is_said() -> None:
    """There is nothing to advise."""
    assert find_fault([], ["x"]) == "x: no such parameter; there are none here"


@pytest.mark.redis
def test_the_public_routes_refuse_them(listed: Gateway) -> None:
    """What is ignored looks like an answer to what was asked."""
    for path in [
        "/v1/quotes?isin=" + SAMSUNG,
        f"/v1/quotes/{SAMSUNG}?field=name",
        "/v1/instruments?markets=KOSPI",
        f"/v1/instruments/{SAMSUNG}/windows?limits=3",
        "/v1/windows?form=3",
        "/v1/windows/latest?row=false",
        "/v1/windows/7?row=false",
        "/v1/sse?key=*",
        "/v1/version?x",
        "/health/live?x",
        "/health/ready?x",
    ]:
        for port in (listed, listed.operators):
            status, body = port.get(path)
            assert status == 400
            name = path.partition("?")[2].partition("=")[0]
            assert json.loads(body)["detail"].startswith(f"{name}: no such parameter")


@pytest.mark.redis
def test_the_operators_routes_refuse_them(listed: Gateway) -> None:
    """The same there."""
    for path in [
        "/v1/pipeline?jobs=a",
        "/v1/pipeline/windows?limits=3",
        "/v1/clients?status=stuck",
        "/v1/dead-letters?reasons=bad_isin",
        "/v1/settings?x",
        "/v1/counters?x",
        "/metrics?x",
    ]:
        assert listed.operators.get(path)[0] == 400


@pytest.mark.redis
def test_a_page_may_have_what_its_script_reads(listed: Gateway) -> None:
    """A link to an instrument, for one."""
    assert listed.get(f"/?instrument={SAMSUNG}")[0] == 200
