"""Server-sent events, over real sockets."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.admission.bounds import Bounds
from gateway.transport.sse import read_event_id
from tests.conftest import eventually
from tests.gateway.asyncapi import check_message
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, HYNIX, SAMSUNG, make_isins, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis


@dataclass
class Event:
    """One event as a browser's EventSource would read it."""

    data: dict[str, Any]
    id: str | None
    retry_ms: int | None


class EventStream:
    """Reads an event stream by the rules of the HTML standard, 9.2.6."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer
        self.headers = dict(answer.headers)

    def next(self) -> Event | None:
        """Return the next event, None when the stream has ended."""
        fields: dict[str, str] = {}
        while (line := self.answer.readline().decode()) not in ("", "\n"):
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        if "data" not in fields:
            return None
        retry = fields.get("retry")
        message = json.loads(fields["data"])
        check_message(message)
        return Event(message, fields.get("id"), int(retry) if retry else None)

    def take(self, kind: str) -> Event:
        """Return the next event, which has to be of this kind.

        Those that come by the clock, heartbeats and status, are passed over.
        """
        while True:
            event = self.next()
            assert event is not None, f"wanted {kind}, got the end"
            if event.data["type"] == kind:
                return event
            passing = ("heartbeat", "status")
            assert event.data["type"] in passing, f"wanted {kind}, got {event}"


@contextmanager
def listening(
    gateway: Gateway, query: str, **headers: str
) -> Iterator[tuple[http.client.HTTPResponse, EventStream]]:
    """Ask for an event stream; end the connection at the end."""
    connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", f"/v1/sse{query}", headers=named)
    with connection.getresponse() as answer:
        yield answer, EventStream(answer)
    connection.close()


def test_an_event_stream_goes_welcome_ack_snapshot_update(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The frames of the stream, each with the position to come back from."""
    publisher.publish(make_row(SAMSUNG, price="0.30"))
    gateway.wait_until(2)
    with listening(gateway, f"?keys={SAMSUNG},X") as (answer, events):
        assert answer.status == 200
        assert events.headers["content-type"] == "text/event-stream"
        assert events.take("welcome").id is None
        ack = events.take("ack")
        assert ack.data["accepted"] == [SAMSUNG]
        assert [r["code"] for r in ack.data["rejected"]] == ["unknown_key"]
        assert ack.id is None, "the snapshot is still to come"
        snapshot = events.take("snapshot")
        assert (snapshot.id, snapshot.data["final"]) == (f"{EPOCH}:2", True)
        publisher.publish(make_row(SAMSUNG, seq=2, trades=37))
        update = events.take("update")
        assert (update.id, update.data["data"][0]["trades"]) == (f"{EPOCH}:3", 37)


def test_a_returning_client_gets_what_changed(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The id of the last event is enough; one of another epoch starts anew."""
    publisher.publish(make_row(SAMSUNG))
    publisher.publish(make_row(HYNIX))
    gateway.wait_until(3)
    for last, resumed, isins in (
        (f"{EPOCH}:2", True, [HYNIX]),
        ("other:2", False, [HYNIX, SAMSUNG]),
        ("nonsense", False, [HYNIX, SAMSUNG]),
    ):
        with listening(gateway, "?keys=*", Last_Event_ID=last) as (_, events):
            events.take("welcome")
            assert events.take("ack").data["resumed"] is resumed
            data = events.take("snapshot").data["data"]
            assert [item["isin"] for item in data] == isins


def test_rows_by_position_are_resumed(publisher: Publisher, gateway: Gateway) -> None:
    """The address says the fields again; numbers are told with each connection."""
    publisher.publish(make_row(SAMSUNG))
    publisher.publish(make_row(HYNIX, price="0.30"))
    gateway.wait_until(3)
    query = "?keys=*&fields=trades,price"
    for last, rows in ((f"{EPOCH}:2", 1), ("other:2", 2)):
        with listening(gateway, query, Last_Event_ID=last) as (_, events):
            events.take("welcome")
            ack = events.take("ack").data
            assert ack["fields"] == ["price", "trades"]
            names = ack["names"]
            assert {*names.values()} == {SAMSUNG, HYNIX}
            data = events.take("snapshot").data["data"]
            assert (len(data), names[str(data[0][0])]) == (rows, HYNIX)
            assert data[0][1:] == [0.3, 0]


def test_bars_come_as_events_and_are_resumed(
    publisher: Publisher, client: redis.Redis, gateway: Gateway
) -> None:
    """The id has two positions; after a cut what changed of bars comes, no other."""
    bars = BarPublisher(client)
    bars.publish(make_bar(), make_bar(HYNIX))
    publisher.publish(make_row(SAMSUNG))
    gateway.wait_until(2)
    query = f"?keys={SAMSUNG},bars:1m:{SAMSUNG},bars:1m:{HYNIX}&last=2"
    with listening(gateway, query) as (_, events):
        events.take("welcome")
        assert len(events.take("ack").data["accepted"]) == 3
        first = [events.next(), events.next()]
        kinds = {event.data["type"]: event for event in first if event is not None}
        assert kinds["snapshot"].data["data"][0]["isin"] == SAMSUNG
        told = kinds["bars"].data["bars"]
        assert [bar["isin"] for bar in told] == [HYNIX, SAMSUNG]
        bars.publish(make_bar(trades=5))
        update = events.take("bars")
        assert [bar["trades"] for bar in update.data["bars"]] == [5]
        assert update.id == f"{EPOCH}:2/{bars.epoch}:2"
        bars.publish(make_bar(trades=6, closed=True))
        eventually(lambda: gateway.count("bar_updates_published") >= 2)
    with listening(gateway, query, Last_Event_ID=update.id) as (_, events):
        events.take("welcome")
        assert events.take("ack").data["resumed"] is True
        later = [events.next(), events.next()]
        (again,) = [e for e in later if e is not None and e.data["type"] == "bars"]
        assert (again.data["snapshot"], again.data["resumed"]) == (True, True)
        assert [(b["isin"], b["trades"]) for b in again.data["bars"]] == [(SAMSUNG, 6)]
        assert later[1] is not None
        assert later[1].id == f"{EPOCH}:2/{bars.epoch}:3"


def test_a_snapshot_in_pieces_has_an_id_at_its_end_only(
    publisher: Publisher, redis_url: str
) -> None:
    """Who loses the connection between two pieces starts from where it was."""
    publisher.publish(*(make_row(isin) for isin in make_isins(5)))
    with running_gateway(redis_url, Bounds(snapshot_items=2)) as gateway:
        gateway.wait_for("reloads")
        with listening(gateway, "?keys=*") as (_, events):
            events.take("welcome")
            events.take("ack")
            pieces = [events.take("snapshot") for _ in range(3)]
    assert [piece.id for piece in pieces] == [None, None, f"{EPOCH}:1"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "bad_request"),
        ("?keys=", 400, "bad_request"),
        (f"?keys={SAMSUNG}&min_interval_ms=-1", 400, "bad_request"),
        (f"?keys={SAMSUNG},{HYNIX}", 400, "key_limit"),
        (f"?keys={SAMSUNG}&fields=prize", 400, "bad_request"),
        (f"?keys={SAMSUNG}&fields={','.join(map(str, range(65)))}", 400, "bad_request"),
    ],
)
def test_a_bad_request_is_answered_as_one(
    redis_url: str, query: str, status: int, code: str
) -> None:
    """A client's mistake has its status, and nothing of it stays."""
    with running_gateway(redis_url, max_keys=1) as gateway:
        got, body = gateway.get(f"/v1/sse{query}")
        assert (got, json.loads(body)["code"]) == (status, code)
        assert gateway.health()["clients"] == 0


def test_pages_of_other_hosts_are_refused_unless_listed(redis_url: str) -> None:
    """A listed page may also read the answer: it is named in the header for that."""
    listed = "https://shop.example"
    with running_gateway(redis_url, allowed_origins=listed) as gateway:
        with listening(gateway, f"?keys={SAMSUNG}", Origin="http://evil") as (got, _):
            assert got.status == 403
        status, body, _ = gateway.fetch(f"/v1/sse?keys={SAMSUNG}", Origin="null")
        assert (status, b"serve it" in body) == (403, True)
        with listening(gateway, f"?keys={SAMSUNG}", Origin=listed) as (got, events):
            assert got.status == 200
            assert events.headers["access-control-allow-origin"] == listed


def test_event_streams_count_as_connections(redis_url: str) -> None:
    """One too many is told to come later; who leaves makes room."""
    with running_gateway(redis_url, max_clients=1) as gateway:
        with listening(gateway, f"?keys={SAMSUNG}") as (_, events):
            events.take("welcome")
            assert gateway.get(f"/v1/sse?keys={SAMSUNG}")[0] == 503
            assert gateway.count("clients_full_refused") == 1
        eventually(lambda: gateway.health()["clients"] == 0)
        with listening(gateway, f"?keys={SAMSUNG}") as (answer, _):
            assert answer.status == 200


@pytest.mark.parametrize("waits_for", ["its turn", "its keys", "nothing"])
def test_who_goes_at_any_stage_gives_its_place_back(
    redis_url: str, tmp_path: Path, waits_for: str
) -> None:
    """Also before the stream is begun: the connection is closed by then."""
    key, token = tmp_path / "token.key", make_token()
    key.write_text(SECRET)
    headers = {"Authorization": f"Bearer {token}"}
    with running_gateway(redis_url, max_clients=1, token_key_file=key) as gateway:
        hub = gateway.hub
        assert hub.tokens is not None
        holder = hub.tokens.read(token).holder
        if waits_for != "nothing":
            payer = gateway.host if waits_for == "its turn" else holder
            hub.turns.charge([payer], 0.2)
        with socket.create_connection((gateway.host, gateway.port)) as asking:
            head = f"GET /v1/sse?keys={SAMSUNG} HTTP/1.1\r\nHost: x\r\n"
            asking.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
            if waits_for == "its keys":
                eventually(lambda: len(hub))
            elif waits_for == "nothing":
                assert asking.recv(9) == b"HTTP/1.1 "

        def is_served() -> bool:
            with listening(gateway, f"?keys={SAMSUNG}", **headers) as (answer, _):
                return answer.status == 200

        eventually(is_served)


def test_who_is_sent_away_while_his_keys_wait_gets_none(
    redis_url: str, tmp_path: Path
) -> None:
    """He is told when to come back, and nothing of him stays."""
    key, token = tmp_path / "token.key", make_token()
    key.write_text(SECRET)
    with running_gateway(redis_url, token_key_file=key) as gateway:
        hub = gateway.hub
        assert hub.tokens is not None
        hub.turns.charge([hub.tokens.read(token).holder], 0.2)
        with socket.create_connection((gateway.host, gateway.port)) as asking:
            head = f"GET /v1/sse?keys={SAMSUNG} HTTP/1.0\r\n"
            asking.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
            [client] = eventually(hub.clients)
            assert gateway.operators.close_client(client.id) == 204
            told = b"".join(iter(lambda: asking.recv(65_536), b""))
        assert b'"closed"' in told
        assert b'"ack"' not in told
        assert client.delivery.keys == ()


def test_a_planned_stop_says_when_to_come_back(gateway: Gateway) -> None:
    """A browser obeys ``retry``; the response ends as it should."""
    with listening(gateway, f"?keys={SAMSUNG}") as (_, events):
        for kind in ("welcome", "ack", "snapshot"):
            events.take(kind)
        gateway.stop()
        notice = events.take("notice")
        assert notice.retry_ms == notice.data["reconnect_after_ms"]
        assert events.next() is None


def test_a_heartbeat_carries_the_position(publisher: Publisher, redis_url: str) -> None:
    """A client of quiet instruments comes back from where it is."""
    publisher.publish()
    with running_gateway(redis_url, heartbeat_ms=50) as gateway:
        gateway.wait_for("reloads")
        with listening(gateway, f"?keys={SAMSUNG}") as (_, events):
            event = events.next()
            while event is not None and event.data["type"] != "heartbeat":
                event = events.next()
            assert event is not None
            assert event.id == f"{EPOCH}:1"


def test_who_takes_nothing_is_cut_off(
    publisher: Publisher, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And costs the gateway nothing after that, not even a line in the log."""
    instruments = make_isins(300)
    with running_gateway(redis_url, Bounds(slow_close_s=0.3)) as gateway:
        gateway.wait_for("reloads")
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stalled.connect((gateway.host, gateway.port))
            stalled.sendall(b"GET /v1/sse?keys=* HTTP/1.1\r\nHost: x\r\n\r\n")
            eventually(lambda: gateway.health()["clients"] == 1)
            for seq in range(1, 21):
                publisher.publish(*(make_row(isin, seq=seq) for isin in instruments))
            gateway.wait_for("clients_slow_closed")
            eventually(lambda: gateway.health()["clients"] == 0)
            stalled.settimeout(10)
            while stalled.recv(65_536):
                pass
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_who_reads_nothing_holds_no_copy_of_a_frame(
    publisher: Publisher, redis_url: str
) -> None:
    """Whatever the frame has: a few pieces wait, and the frame is everybody's."""
    publisher.publish(*(make_row(isin) for isin in make_isins(20_000)))
    with running_gateway(redis_url) as gateway, socket.socket() as stalled:
        gateway.wait_for("reloads")
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        stalled.connect((gateway.host, gateway.port))
        stalled.sendall(b"GET /v1/sse?keys=* HTTP/1.1\r\nHost: x\r\n\r\n")

        def unsent() -> int:
            assert gateway.server is not None
            # Of the stream; what was asked for before has been taken.
            connections = tuple(gateway.server.server_state.connections)
            return sum(c.transport.get_write_buffer_size() for c in connections)

        eventually(lambda: unsent() > 0)
        assert unsent() <= 49_152


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("k3x9:12", ("k3x9", 12)),
        ("a:b:7", ("a:b", 7)),
        ("k3x9:", None),
        (":5", None),
        ("k3x9:-1", None),
        ("k3x9:" + "9" * 30, None),
        ("", None),
        (None, None),
    ],
)
def test_the_position_in_an_events_id(
    text: str | None, since: tuple[str, int] | None
) -> None:
    """What is not ours is no position: the client starts anew."""
    found, _ = read_event_id(text)
    assert (found and (found.epoch, found.offset)) == since


def test_several_jobs_are_as_calm_as_on_the_stream(
    gateway: Gateway, publisher: Publisher
) -> None:
    """What is held back lies behind an event's id: who returns with it misses none."""
    with listening(gateway, f"?keys={SAMSUNG},{HYNIX}") as (_, events):
        events.take("welcome")
        events.take("ack")
        events.take("snapshot")
        publisher.publish(make_row(SAMSUNG, seq=1))
        found = [events.take("update")]
        publisher.publish_part(make_row(SAMSUNG, seq=2), make_row(HYNIX))
        found.append(events.take("update"))
        publisher.publish()
        found.append(events.take("update"))
    shown = [(i["isin"], i["seq"]) for event in found for i in event.data["data"]]
    assert shown == [(SAMSUNG, 1), (HYNIX, 1), (SAMSUNG, 2)]
    assert [event.id for event in found] == [f"{EPOCH}:{n}" for n in (2, 2, 4)]
