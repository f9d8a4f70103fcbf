"""HEAD is answered wherever GET is."""

from http.client import HTTPConnection

import pytest

from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway

pytestmark = pytest.mark.redis

PATHS = [
    "/",
    "/static/tick.js",
    "/v1/quotes",
    f"/v1/quotes/{SAMSUNG}",
    "/v1/windows/latest",
    "/v1/version",
    "/v1/market-hours",
    "/v1/openapi.json",
    "/health/live",
    "/v1/sse?keys=*",
    "/v1/stream",
    "/v1/nothing",
]


def test_head_has_the_status_and_headers_of_get_and_no_body(listed: Gateway) -> None:
    """On one connection, which stays usable: nothing of a body is sent."""
    connection = HTTPConnection(listed.host, listed.port, timeout=10)
    for path in PATHS:
        connection.request("HEAD", path)
        with connection.getresponse() as answer:
            assert answer.read() == b""
            head = (answer.status, answer.getheader("content-length"))
        if "sse" not in path:
            status, body, _ = listed.fetch(path)
            assert head == (status, str(len(body))), path
    connection.close()


def test_head_of_what_only_operators_have(listed: Gateway) -> None:
    """The same there."""
    connection = HTTPConnection(listed.host, listed.operators.port, timeout=10)
    connection.request("HEAD", "/v1/pipeline")
    assert connection.getresponse().status == 200
    connection.close()
