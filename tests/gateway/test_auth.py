"""Streams and requests with tokens, over real sockets."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.admission.bounds import Bounds
from gateway.admission.tokens import CLOCK_SKEW_S
from gateway.server import GatewayFailed, run_gateway
from gateway.settings import GatewaySettings
from tests.conftest import PATIENCE, eventually
from tests.gateway.issuer import ODD_TOKENS, SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, Stream, running_gateway

pytestmark = pytest.mark.redis


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """The file with the tests' secret."""
    path = tmp_path / "token.key"
    path.write_text(SECRET + "\n")
    return path


@pytest.fixture
def guarded(publisher: Publisher, redis_url: str, key_file: Path) -> Iterator[Gateway]:
    """A gateway that asks for tokens and has two instruments."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    with running_gateway(
        redis_url, Bounds(auth_s=1), token_key_file=key_file
    ) as gateway:
        gateway.wait_for("reloads")
        yield gateway


def authenticate(stream: Stream, token: str) -> dict[str, Any]:
    """Show a token and return the ack."""
    stream.say(op="auth", id=0, token=token)
    return stream.take("ack")


def test_a_token_opens_the_stream(guarded: Gateway) -> None:
    """Before it, nothing is to be had but a pong."""
    with guarded.stream(f"?keys={SAMSUNG}") as stream:
        assert stream.take("error")["code"] == "not_allowed"
        stream.say(op="subscribe", id=1, keys=[SAMSUNG])
        error = stream.take("error")
        assert (error["id"], error["code"]) == (1, "not_allowed")
        stream.say(op="ping")
        stream.take("pong")
        expires = int(time.time()) + 60
        ack = authenticate(stream, make_token(exp=expires))
        assert (ack["id"], ack["op"]) == (0, "auth")
        assert ack["expires"] == (expires + CLOCK_SKEW_S) * 1_000_000
        assert [i["isin"] for i in stream.subscribe("*")] == [HYNIX, SAMSUNG]


def test_a_token_may_narrow_what_is_to_be_had(guarded: Gateway) -> None:
    """Other keys are rejected one by one, and the interval is its own at least."""
    wishes = {"keys": [SAMSUNG], "min_interval_ms": 5_000}
    with guarded.stream() as stream:
        authenticate(stream, make_token(tick=wishes))
        stream.say(op="subscribe", keys=[SAMSUNG, HYNIX, "*"])
        ack = stream.take("ack")
        assert ack["accepted"] == [SAMSUNG]
        assert [(r["key"], r["code"]) for r in ack["rejected"]] == [
            (HYNIX, "not_allowed"),
            ("*", "not_allowed"),
        ]
        assert ack["min_interval_ms"] == 6_000


def test_a_newer_token_replaces_the_first(
    publisher: Publisher, guarded: Gateway
) -> None:
    """The connection outlives the first one; what the second lacks is dropped."""
    with guarded.stream() as stream:
        authenticate(stream, make_token(-CLOCK_SKEW_S + 4))
        stream.subscribe(SAMSUNG, HYNIX)
        ack = authenticate(stream, make_token(tick={"keys": [HYNIX]}))
        assert ack["accepted"] == [HYNIX]
        assert [r["key"] for r in ack["rejected"]] == [SAMSUNG]
        time.sleep(4)
        publisher.publish(make_row(SAMSUNG, seq=2), make_row(HYNIX, seq=2))
        assert [i["isin"] for i in stream.take("update")["data"]] == [HYNIX]


def test_an_expired_token_closes_with_4401(guarded: Gateway) -> None:
    """On the open connection, and when it is shown."""
    with guarded.stream() as stream:
        authenticate(stream, make_token(-CLOCK_SKEW_S + 3))
        assert stream.close_code() == 4401
    with guarded.stream() as stream:
        stream.say(op="auth", token=make_token(-60))
        assert stream.take("error")["code"] == "not_allowed"
        assert stream.close_code() == 4401
    assert guarded.count("clients_token_expired") == 2


def test_a_refused_or_missing_token_closes_with_4501(guarded: Gateway) -> None:
    """The error says why; silence has its deadline."""
    with guarded.stream() as stream:
        stream.say(op="auth", token="x")
        assert "refused" in stream.take("error")["message"]
        assert stream.close_code() == 4501
    with guarded.stream() as stream:
        began_s = time.monotonic()
        assert stream.close_code() == 4501
        assert time.monotonic() - began_s < 5 * PATIENCE
    assert guarded.count("clients_token_refused") == 2
    eventually(lambda: guarded.health()["clients"] == 0)


def test_the_reason_for_the_end_is_readable(guarded: Gateway) -> None:
    """Whoever develops a client finds it in the close frame."""
    with guarded.stream() as stream:
        stream.say(op="auth", token="x")
        stream.take("error")
        with pytest.raises(ConnectionClosed) as caught:
            stream.raw()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.reason.startswith("the token is refused")


def fetch(gateway: Gateway, path: str, token: str | None) -> tuple[int, dict[str, Any]]:
    """Return status and body of a request with a token."""
    url = f"http://{gateway.host}:{gateway.port}{path}"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_every_price_asks_for_a_token(guarded: Gateway) -> None:
    """What the stream does not give away, no other resource does."""
    for path in [
        "/v1/quotes",
        f"/v1/quotes/{SAMSUNG}",
        "/v1/windows",
        "/v1/sse?keys=*",
    ]:
        for token in (None, "x", make_token(-60)):
            status, body = fetch(guarded, path, token)
            assert (status, body["code"]) == (401, "not_allowed")
    assert guarded.count("clients_token_refused") == 12
    assert guarded.get("/health/live")[0] == 200


def test_rest_gives_what_the_token_allows(guarded: Gateway) -> None:
    """A part of the instruments is a part everywhere."""
    narrow = make_token(tick={"keys": [SAMSUNG]})
    assert fetch(guarded, "/v1/quotes", make_token())[1]["count"] == 2
    data = fetch(guarded, "/v1/quotes", narrow)[1]["data"]
    assert [row["isin"] for row in data] == [SAMSUNG]
    assert fetch(guarded, f"/v1/quotes?isins={HYNIX}", narrow)[0] == 403
    assert fetch(guarded, f"/v1/quotes/{HYNIX}", narrow)[0] == 403
    assert fetch(guarded, f"/v1/quotes/{SAMSUNG}", narrow)[0] == 200
    assert fetch(guarded, "/v1/windows", narrow)[0] == 403
    assert fetch(guarded, "/v1/windows", make_token())[0] == 200


def test_an_event_stream_with_a_token(guarded: Gateway) -> None:
    """It ends when the token does."""
    url = f"http://{guarded.host}:{guarded.port}/v1/sse?keys={SAMSUNG},{HYNIX}"
    token = make_token(-CLOCK_SKEW_S + 2, tick={"keys": [SAMSUNG]})
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read().decode()
    assert f'"accepted":["{SAMSUNG}"]' in text
    assert '"code":"not_allowed"' in text
    assert guarded.count("clients_token_expired") == 1


def ticket(within_s: float, *, lasts_s: float = 60) -> str:
    """Return a ticket that opens streams for so long."""
    return make_token(lasts_s, tick={"open_until": time.time() + within_s})


def test_an_event_stream_with_a_ticket_goes_on_where_it_was(
    publisher: Publisher, guarded: Gateway
) -> None:
    """As an EventSource has it: without a header, the position in the address."""
    url = f"http://{guarded.host}:{guarded.port}/v1/sse?keys=*"
    publisher.publish(make_row(SAMSUNG, "71900", seq=2))
    guarded.wait_until(publisher.offset)
    first = f"{url}&ticket={ticket(9, lasts_s=-CLOCK_SKEW_S + 2)}"
    with urllib.request.urlopen(first, timeout=10) as answer:
        text = answer.read().decode()
    last = text.rsplit("\nid: ", 1)[1].partition("\n")[0]
    publisher.publish(make_row(HYNIX, seq=2))
    guarded.wait_until(publisher.offset)
    again = f"{url}&last_event_id={last}&ticket={ticket(9, lasts_s=-CLOCK_SKEW_S + 2)}"
    with urllib.request.urlopen(again, timeout=10) as answer:
        text = answer.read().decode()
    assert '"resumed":true' in text
    assert HYNIX in text
    assert SAMSUNG not in text


def test_a_ticket_is_for_event_streams_alone(guarded: Gateway) -> None:
    """And a token that lasts is refused in an address."""
    stream = f"/v1/sse?keys={SAMSUNG}"
    for token, rule in (
        (make_token(), "tick.open_until"),
        (ticket(-CLOCK_SKEW_S - 5), "open_until is over"),
        (ticket(3_000), "within the next 300 s"),
        ("x", "refused"),
    ):
        status, body = fetch(guarded, f"{stream}&ticket={token}", None)
        assert (status, body["code"]) == (401, "not_allowed")
        assert rule in body["detail"]
    assert fetch(guarded, f"/v1/quotes?ticket={ticket(30)}", None)[0] == 400
    assert fetch(guarded, "/v1/quotes", ticket(30))[0] == 200


def test_no_odd_token_is_more_than_refused(
    guarded: Gateway, capfd: pytest.CaptureFixture[str]
) -> None:
    """A client that got anything but 4501 or 401 would try again for ever."""
    for token in ODD_TOKENS:
        with guarded.stream() as stream:
            # As JSON has it: half a surrogate stays half a surrogate.
            stream.say(op="auth", token=token)
            assert stream.take("error")["code"] in ("not_allowed", "bad_json")
            if len(token.encode(errors="replace")) == len(token):
                assert stream.close_code() == 4501
        if token.isascii():
            sent = token[:60_000]
            assert fetch(guarded, "/v1/quotes", sent)[0] == 401
            assert fetch(guarded, f"/v1/sse?keys={SAMSUNG}", sent)[0] == 401
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), ("short", "at least 32 bytes")],
)
def test_a_key_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    """The gateway does not start without the protection that was asked for."""
    path = tmp_path / "token.key"
    if content is not None:
        path.write_text(content)
    with pytest.raises(GatewayFailed, match=f"^token_key_file {path}: ") as failed:
        run_gateway(GatewaySettings(port=0, token_key_file=path))
    assert reason in str(failed.value)
