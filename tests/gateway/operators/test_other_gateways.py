"""The clients of other gateways: real gateways, and what does not answer as one."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.operators.other_gateways import MOST_BYTES
from gateway.settings import GatewaySettings
from tests.conftest import eventually
from tests.gateway.crew import crew
from tests.gateway.servers import Gateway, running_gateway

TOKEN = "correct-horse-battery-staple"


def ask(gateway: Gateway, query: str = "", **headers: str) -> dict[str, dict[str, Any]]:
    """Return what a gateway says of the others, by their addresses."""
    path = f"/v1/other-gateways{query}"
    status, body, _ = gateway.operators.fetch(path, **headers)
    assert status == 200, body
    answer = json.loads(body)
    assert answer["count"] == len(answer["data"])
    return {other["gateway"]: other for other in answer["data"]}


def operators_of(gateway: Gateway) -> str:
    """Return where a gateway answers operators."""
    return f"127.0.0.1:{gateway.operators.port}"


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, Any]]:
    """Answer every question with this; yield the address, and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def never_answering() -> Iterator[str]:
    """Let others connect, and say nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.redis
def test_each_other_gateway_is_shown_or_why_it_is_not(
    redis_url: str, tmp_path: Path
) -> None:
    """One that is killed, strange, slow or careful costs nothing of what others say."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with ExitStack() as stack:
        careful = stack.enter_context(
            running_gateway(redis_url, operators_token_file=file)
        )
        slow = stack.enter_context(never_answering())
        long, _ = stack.enter_context(answering(200, b" " * (MOST_BYTES + 1)))
        odd, _ = stack.enter_context(answering(200, b'{"count":"many"}'))
        away, asked_there = stack.enter_context(answering(200, b""))
        there = {"Location": f"http://{away}/v1/clients"}
        astray, _ = stack.enter_context(answering(307, b"", **there))
        other = stack.enter_context(crew(redis_url, tmp_path, workers=1))
        named = [operators_of(other.gateway), operators_of(careful)]
        named += [slow, long, odd, astray]
        addresses = ",".join(f"http://{address}" for address in named)
        own = stack.enter_context(running_gateway(redis_url, other_gateways=addresses))
        problems = {
            named[0]: None,
            named[1]: "it does not accept the operators' token of this gateway",
            slow: "it has not answered within 1 s",
            long: f"its answer has more than {MOST_BYTES:,} bytes",
            odd: "its answer is not that of a gateway",
            astray: "it has answered 307",
        }
        with other.gateway.stream("?keys=*") as stream:
            shown = eventually(lambda: with_client(own, named[0], problems))
            [row] = shown[named[0]]["data"]
            assert row["id"] == stream.welcome["connection"]
            assert shown[named[0]]["states"] == states(live=1)
            none_new = ask(own, "?state=new")[named[0]]
            assert (none_new["count"], none_new["data"]) == (1, [])
            assert own.operators.get("/v1/other-gateways?state=x")[0] == 400
            assert asked_there == []
            assert all(
                (shown[name]["count"], shown[name]["data"]) == (None, [])
                for name in named[1:]
            )
            other.process.kill()
            other.process.wait()
        gone = eventually(lambda: with_problem(own, named[0]))
        assert gone["problem"] == "no connection: Connection refused"


def with_client(
    gateway: Gateway, name: str, problems: dict[str, str | None]
) -> dict[str, dict[str, Any]] | None:
    """Return what is said once a gateway has a live client, and each has its problem.

    On a busy machine any of them may not have answered within its second.
    """
    shown = ask(gateway)
    if {name: shown[name]["problem"] for name in problems} != problems:
        return None
    return shown if shown[name]["states"].get("live") == 1 else None


def with_problem(gateway: Gateway, name: str) -> dict[str, Any] | None:
    """Return what is said of a gateway once it cannot be asked."""
    shown = ask(gateway)[name]
    return shown if shown["problem"] is not None else None


def states(**counts: int) -> dict[str, int]:
    """Return how many clients are in each state."""
    return {"new": 0, "live": 0, "behind": 0, "stuck": 0} | counts


@pytest.mark.redis
def test_gateways_show_each_other_one_token_and_ask_only_when_asked(
    redis_url: str, tmp_path: Path
) -> None:
    """Whoever asks has to be an operator, too."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    secret = f"Bearer {TOKEN}"
    with (
        running_gateway(redis_url, operators_token_file=file) as other,
        answering(200, b"{}") as (idle, asked),
    ):
        name = operators_of(other)
        addresses = f"http://{name}, http://{idle}"
        settings = {"operators_token_file": file, "other_gateways": addresses}
        with running_gateway(redis_url, **settings) as own:
            assert own.operators.get("/v1/other-gateways")[0] == 401
            assert own.get("/v1/other-gateways")[0] == 404
            assert own.operators.fetch("/v1/clients", Authorization=secret)[0] == 200
            assert asked == []
            shown = ask(own, Authorization=secret)
            assert shown[name]["problem"] is None
            assert shown[name]["states"] == states()
            assert asked == ["/v1/clients?limit=20"]
            status, body, _ = own.operators.fetch("/v1/settings", Authorization=secret)
            assert (status, TOKEN.encode() in body) == (200, False)


def test_what_is_no_address_is_refused() -> None:
    """With the value and the rule."""
    for bad in [
        "10.0.0.2:8001",
        "http://10.0.0.2:8001/",
        "http://user:secret@host:8001",
        "ftp://host:8001",
        "http://host:99999",
        "http://host:0",
        "http://host:8001?x=1",
    ]:
        with pytest.raises(
            ValidationError, match=r"each must be like http://10\.0\.0\.2:8001"
        ):
            GatewaySettings.model_validate({"other_gateways": f"http://ok:1,{bad}"})


def test_more_than_a_page_can_show_are_refused() -> None:
    """Each costs a connection whenever somebody looks."""
    many = ",".join(f"http://host:{port}" for port in range(1, 34))
    with pytest.raises(ValidationError, match="at most 32"):
        GatewaySettings.model_validate({"other_gateways": many})
