"""The operators' port: who may use it, and that nobody else gets anything of it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gateway.http.operator_access import OperatorAccess, host_name
from gateway.server import GatewayFailed, listen, run_gateway
from gateway.settings import GatewaySettings
from tests.gateway.publisher import Publisher
from tests.gateway.servers import Gateway, running_gateway

TOKEN = "correct-horse-battery-staple"


def ask(
    gateway: Gateway, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, object]]:
    """Return status and body of an operator's request."""
    url = f"http://{gateway.host}:{gateway.operators_port}{path}"
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture
def guarded(publisher: Publisher, redis_url: str, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway whose operators have a token."""
    publisher.publish()
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with running_gateway(redis_url, operators_token_file=file) as running:
        yield running


@pytest.mark.redis
def test_the_public_port_has_no_operators_route(gateway: Gateway) -> None:
    """Not even behind a refusal, and whatever the request calls itself."""
    assert gateway.get("/v1/counters")[0] == 404
    assert "counters" not in json.loads(gateway.get("/health/ready")[1])
    request = urllib.request.Request(
        f"http://{gateway.host}:{gateway.port}/v1/counters",
        headers={"Host": f"127.0.0.1:{gateway.operators_port}"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    refused.value.close()
    assert refused.value.code == 404


@pytest.mark.redis
def test_operators_have_the_public_routes_too(gateway: Gateway) -> None:
    """One port is enough for them."""
    assert ask(gateway, "/v1/quotes")[0] == 200
    assert ask(gateway, "/v1/counters")[1]["reloads"] == 1
    assert "counters" in ask(gateway, "/health/ready")[1]


@pytest.mark.redis
def test_without_a_token_only_names_of_loopback_are_answered(gateway: Gateway) -> None:
    """A page whose name was pointed at this machine reads nothing."""
    status, body = ask(gateway, "/v1/counters", Host="evil.example:8001")
    assert (status, body["code"]) == (403, "not_allowed")
    assert "evil.example" in str(body["detail"])


@pytest.mark.redis
def test_a_page_of_another_origin_changes_nothing(gateway: Gateway) -> None:
    """Not even where it guesses the address."""
    status, body = ask(
        gateway, "/v1/clients/x", "DELETE", Origin="https://evil.example"
    )
    assert (status, body["code"]) == (403, "not_allowed")


@pytest.mark.redis
def test_operators_show_their_token(guarded: Gateway) -> None:
    """Its absence and a wrong one are refused alike; pages and health are not."""
    assert ask(guarded, "/v1/counters")[0] == 401
    assert ask(guarded, "/v1/counters", Authorization="Bearer wrong")[0] == 401
    status, _ = ask(guarded, "/v1/counters", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert guarded.operators.get("/")[0] == 200
    assert guarded.operators.get("/health/live")[0] == 200


def test_off_loopback_a_token_is_a_must() -> None:
    """Nobody opens the port to a network by mistake."""
    with pytest.raises(
        ValidationError, match=r"operators_host 0\.0\.0\.0.*need a token"
    ):
        GatewaySettings(operators_host="0.0.0.0")
    with pytest.raises(ValidationError, match="operators_port 8000: must be another"):
        GatewaySettings(port=8000, operators_port=8000)
    assert GatewaySettings(port=9000).port_for_operators == 9001
    assert GatewaySettings(port=0).port_for_operators == 0


@pytest.mark.parametrize("text", [None, "short"])
def test_a_bad_token_file_is_named(tmp_path: Path, text: str | None) -> None:
    """The gateway does not start, and its ports are free again."""
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    settings = GatewaySettings(port=0, operators_token_file=file)
    with pytest.raises(ValueError, match="operators_token_file"):
        listen(settings)
    with pytest.raises(GatewayFailed, match=f"operators_token_file {file}: "):
        run_gateway(settings)


def test_a_host_is_read_without_its_port() -> None:
    """Both families."""
    for host, name in [
        ("localhost:8001", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:8001", "[::1]"),
        ("[::1]", "[::1]"),
        ("127.0.0.1:8001", "127.0.0.1"),
        ("", ""),
    ]:
        assert host_name(host) == name


def test_a_token_in_the_wrong_scheme_is_none() -> None:
    """RFC 6750: Bearer."""
    access = OperatorAccess(TOKEN)
    assert not access.is_operator(Headers({"authorization": f"Basic {TOKEN}"}))
    assert not access.is_operator(Headers({}))
    assert access.is_operator(Headers({"authorization": f"bearer {TOKEN}"}))


@pytest.mark.redis
def test_a_stream_at_the_operators_port_is_guarded_too(gateway: Gateway) -> None:
    """The board is there as well; a page with another name has no stream."""
    with gateway.operators.stream() as stream:
        assert stream.subscribe("*") == []
    url = f"ws://{gateway.host}:{gateway.operators_port}/v1/stream"
    headers = {"Host": "evil.example", "Origin": "http://evil.example"}
    with pytest.raises(InvalidStatus) as refused:
        connect(url, compression=None, additional_headers=headers)
    assert refused.value.response.status_code == 403
