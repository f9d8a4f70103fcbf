"""What a browser needs to let a page of another host read an answer."""

import http.client
import subprocess
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest

from tests.conftest import PATIENCE, input_file
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis

LISTED = "https://shop.example"
ALLOWED = "Access-Control-Allow-Origin"


@pytest.fixture(name="gateway")
def _gateway(redis_url: str) -> Iterator[Gateway]:
    # As people write it: the browser leaves the port out.
    with running_gateway(redis_url, allowed_origins=f"{LISTED}:443") as gateway:
        yield gateway


def ask(
    gateway: Gateway, path: str, method: str = "GET", **headers: str
) -> HTTPResponse:
    """Return the head of an answer."""
    client = http.client.HTTPConnection(gateway.host, gateway.port, timeout=PATIENCE)
    client.request(method, path, headers=headers)
    answer = client.getresponse()
    client.close()
    return answer


def preflight(gateway: Gateway, path: str, **headers: str) -> HTTPResponse:
    """Ask as a browser does before it sends what a page may not send by itself."""
    asked = {
        "Origin": LISTED,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    return ask(gateway, path, "OPTIONS", **(asked | headers))


def test_a_listed_page_may_read_every_answer(gateway: Gateway) -> None:
    """Also one that says what was wrong; caches keep pages apart."""
    for path, status in [
        ("/v1/quotes", 200),
        ("/v1/instruments?q=a", 200),
        ("/v1/version", 200),
        (f"/v1/sse?keys={SAMSUNG}", 200),
        ("/v1/quotes?fields=wrong", 400),
        ("/v1/nothing", 404),
        ("/", 200),
        ("/static/board.js", 200),
    ]:
        answer = ask(gateway, path, Origin=LISTED)
        assert (answer.status, answer.getheader(ALLOWED)) == (status, LISTED)
        assert "Origin" in (answer.getheader("Vary") or "")
        assert answer.getheader("Access-Control-Expose-Headers") == "ETag, Retry-After"
        assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize("listed", ["", LISTED, "*"])
def test_every_page_may_import_the_client(redis_url: str, listed: str) -> None:
    """Which is public, and tells a page that is not listed so; nothing else is open."""
    others = "*" if listed == "*" else None
    with running_gateway(redis_url, allowed_origins=listed) as gateway:
        for headers in ({}, {"Origin": LISTED}, {"Origin": "null"}):
            answer = ask(gateway, "/static/tick.js", **headers)
            assert (answer.status, answer.headers.get_all(ALLOWED)) == (200, ["*"])
        for path in ("/v1/version", "/static/board.js", "/"):
            answer = ask(gateway, path, Origin="https://other.example")
            assert (answer.status, answer.getheader(ALLOWED)) == (200, others)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_answer_without_a_body_may_be_read_too(
    gateway: Gateway, method: str
) -> None:
    """To HEAD, and where nothing has changed."""
    for path, allowed in [("/v1/instruments", LISTED), ("/static/tick.js", "*")]:
        answer = ask(gateway, path, method, Origin=LISTED)
        assert (answer.status, answer.headers.get_all(ALLOWED)) == (200, [allowed])
        tag = answer.getheader("ETag")
        assert tag is not None
        headers = {"Origin": LISTED, "If-None-Match": tag}
        again = ask(gateway, path, method, **headers)
        assert (again.status, again.headers.get_all(ALLOWED)) == (304, [allowed])
        assert again.getheader("Access-Control-Expose-Headers") == "ETag, Retry-After"
        assert "Origin" in (again.getheader("Vary") or "")


def test_what_people_tried_is_answered(gateway: Gateway) -> None:
    """The script asks four addresses, and whether a token may be sent."""
    command = ["bash", str(input_file("e/e02_cors.sh")), str(gateway.port)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    *counts, asked = ran.stdout.splitlines()
    assert [line.rpartition(": ")[2] for line in counts] == ["1"] * 4
    assert asked == "preflight 200"


def test_no_other_page_may(gateway: Gateway) -> None:
    """A browser withholds the answer; caches still keep pages apart."""
    for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        answer = ask(gateway, "/v1/quotes", **headers)
        assert (answer.status, answer.getheader(ALLOWED)) == (200, None)
        assert "Origin" in (answer.getheader("Vary") or "")


def test_a_listed_page_may_send_its_token(gateway: Gateway) -> None:
    """A browser asks first; it comes without the token then."""
    for path in ["/v1/quotes", f"/v1/sse?keys={SAMSUNG}"]:
        answer = preflight(gateway, path)
        assert (answer.status, answer.getheader(ALLOWED)) == (200, LISTED)
        allowed = answer.getheader("Access-Control-Allow-Headers") or ""
        assert {"Authorization", "If-None-Match", "Last-Event-ID"} <= {
            *allowed.split(", ")
        }
        assert answer.getheader("Access-Control-Allow-Methods") == "GET, HEAD"


def test_what_no_page_may_send_is_refused(gateway: Gateway) -> None:
    """The answer names what it was."""
    for name, value in [
        ("Origin", "https://evil.example"),
        ("Access-Control-Request-Method", "DELETE"),
        ("Access-Control-Request-Headers", "x-mine"),
    ]:
        assert preflight(gateway, "/v1/quotes", **{name: value}).status == 400


def test_a_page_is_told_to_come_later(redis_url: str) -> None:
    """It could not read so without the header."""
    with running_gateway(
        redis_url, allowed_origins="*", requests_per_second=0.01
    ) as gateway:
        for _ in range(100):
            answer = ask(gateway, "/v1/version", Origin="https://any.example")
            assert answer.getheader(ALLOWED) == "*"
            if answer.status == 429:
                break
        assert answer.status == 429


def test_operators_have_no_pages_elsewhere(gateway: Gateway) -> None:
    """The list is of those that show prices."""
    answer = ask(gateway.operators, "/v1/quotes", Origin=LISTED)
    assert (answer.status, answer.getheader(ALLOWED)) == (200, None)
    answer = ask(gateway.operators, "/static/tick.js", Origin=LISTED)
    assert (answer.status, answer.getheader(ALLOWED)) == (200, None)
    assert preflight(gateway.operators, "/v1/quotes").status == 403
