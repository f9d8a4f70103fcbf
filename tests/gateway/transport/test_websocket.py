"""The endpoint /v1/stream, over real sockets."""

import json
from collections.abc import Iterator

import pytest
import redis
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gateway.admission.bounds import Bounds
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    SAMSUNG,
    WINDOW_MS,
    make_isins,
    make_row,
)
from tests.gateway.servers import Gateway, running_gateway
from tests.gateway.stalled import END, StalledReader
from throttle.contract.candidate import candidate_field, encode_candidate

pytestmark = pytest.mark.redis


def test_a_stream_goes_welcome_ack_snapshot_update(
    publisher: Publisher, gateway: Gateway
) -> None:
    """Every step of a subscription comes in its order, at its position."""
    publisher.publish(make_row(SAMSUNG))
    gateway.wait_until(2)
    with gateway.stream() as stream:
        assert stream.welcome["protocol"] == "tick.v1"
        assert stream.welcome["epoch"] == EPOCH
        assert stream.welcome["window_ms"] == 2000
        assert stream.welcome["limits"]["keys"] == 1024
        stream.say(op="subscribe", id=1, keys=[SAMSUNG, "KOSPI"])
        ack = stream.take("ack")
        assert (ack["id"], ack["accepted"], ack["count"]) == (1, [SAMSUNG], 1)
        assert [r["code"] for r in ack["rejected"]] == ["unknown_key"]
        snapshot = stream.take("snapshot")
        assert (snapshot["offset"], snapshot["final"]) == (2, True)
        assert snapshot["data"][0]["trades"] == 0
        published = publisher.publish(make_row(SAMSUNG, seq=2, trades=37))
        update = stream.take("update")
        assert (update["epoch"], update["offset"]) == (EPOCH, 3)
        assert update["window"] == published.window
        assert update["data"][0]["trades"] == 37
        assert "merged" not in update


def test_the_first_window_of_all_comes_as_a_snapshot(
    publisher: Publisher, redis_url: str
) -> None:
    """A client that was there before the throttle gets its first epoch in full."""
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        with gateway.stream() as stream:
            assert stream.welcome["epoch"] is None
            assert stream.subscribe(SAMSUNG) == []
            publisher.publish(make_row(SAMSUNG))
            snapshot = stream.take("snapshot")
            assert (snapshot["epoch"], snapshot["offset"]) == (EPOCH, 1)
            assert [item["isin"] for item in snapshot["data"]] == [SAMSUNG]


def test_a_price_arrives_as_it_was_published(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The text of a price is the same in the snapshot and in the update."""
    publisher.publish(make_row(price="0.30"))
    gateway.wait_until(2)
    with gateway.stream(f"?keys={SAMSUNG}") as stream:
        assert json.loads(stream.raw())["accepted"] == [SAMSUNG]
        assert b'"price":0.30,' in stream.raw()
        publisher.publish(make_row(price="1234567890.1234567890", seq=2))
        assert b'"price":1234567890.1234567890,' in stream.raw()


def test_an_instrument_published_twice_is_sent_once(
    publisher: Publisher, gateway: Gateway, client: redis.Redis
) -> None:
    """A message that comes twice, and an older row in a later one, reach nobody."""
    with gateway.stream() as stream:
        stream.subscribe(SAMSUNG, HYNIX)
        first = publisher.publish(make_row(SAMSUNG, seq=5))
        stream.take("update")
        publisher.repeat(first)
        # Or it would be restated.
        client.hdel(publisher.keys.last, SAMSUNG)
        publisher.publish(make_row(SAMSUNG, seq=4))
        publisher.publish(make_row(HYNIX))
        update = stream.take("update")
        assert [item["isin"] for item in update["data"]] == [HYNIX]
        assert update["offset"] == 4
    assert gateway.count("updates_repeated") == 1
    assert gateway.count("rows_stale") == 1


def test_late_trades_reach_a_client_with_their_window(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The shown trade stays; who was away meanwhile is told of the instrument."""
    with gateway.stream() as stream:
        stream.subscribe(SAMSUNG, HYNIX)
        shown = publisher.publish(make_row(seq=5), make_row(HYNIX))
        [before, _] = sorted(
            stream.take("update")["data"], key=lambda item: item["isin"] == HYNIX
        )
        publisher.publish(make_row(price="199600.5", seq=4))
        update = stream.take("update")
    late = {"volume": 40, "value": 7984020, "high": 199600.5, "low": 199600.5}
    assert update["window"] == shown.window + WINDOW_MS
    assert update["data"] == [before | late]
    assert list(update["data"][0])[-5:] == ["trades", *late]
    with gateway.stream() as stream:
        since = {"epoch": EPOCH, "offset": shown.offset}
        [item] = stream.subscribe(SAMSUNG, HYNIX, since=since)
    assert item == before | {"trades": 0}
    assert gateway.count("rows_stale") == 0


def test_windows_published_together_come_as_one_update(
    publisher: Publisher, gateway: Gateway
) -> None:
    """After an outage the update says for how many windows it stands."""
    with gateway.stream() as stream:
        stream.subscribe("*")
        publisher.publish_outage(
            [make_row(seq=1, trades=2)], [], [make_row(seq=2, trades=3)]
        )
        update = stream.take("update")
        assert (update["merged"], update["offset"]) == (3, 4)
        assert update["data"][0]["trades"] == 5


def test_a_returning_client_gets_what_changed(
    publisher: Publisher, gateway: Gateway
) -> None:
    """With its position it resumes; with one of another epoch it starts anew."""
    publisher.publish(make_row(SAMSUNG))
    publisher.publish(make_row(HYNIX))
    gateway.wait_until(3)
    with gateway.stream() as stream:
        since = {"epoch": EPOCH, "offset": 2}
        stream.say(op="subscribe", keys=["*"], since=since)
        assert stream.take("ack")["resumed"] is True
        assert [i["isin"] for i in stream.take("snapshot")["data"]] == [HYNIX]
    with gateway.stream() as stream:
        assert len(stream.subscribe("*", since={"epoch": "x", "offset": 1})) == 2


def test_too_many_keys_in_the_address_are_refused(redis_url: str) -> None:
    """The connection stays, without a key."""
    with (
        running_gateway(redis_url, max_keys=1) as gateway,
        gateway.stream(f"?keys={SAMSUNG},{HYNIX}") as stream,
    ):
        assert stream.take("error")["code"] == "key_limit"
        stream.say(op="list")
        assert stream.take("ack")["count"] == 0


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/v1/streams", 404, "/v1/streams: the stream is /v1/stream"),
        ("/v1/stream?key=*", 400, "key: no such parameter; is keys meant?"),
        ("/v1/stream?keys=*&keys=*", 400, "keys: is there 2 times"),
        (
            "/v1/stream?keys=*&min_interval_ms=often",
            400,
            "min_interval_ms: often: must be a whole number from 0",
        ),
        ("/v1/stream?min_interval_ms=9", 400, "min_interval_ms: only with keys"),
        ("/v1/stream?fields=price", 400, "fields: only with keys"),
        (
            f"/v1/stream?keys=*&fields={','.join(map(str, range(65)))}",
            400,
            "fields: 65 names, 64 at most",
        ),
    ],
)
def test_an_address_that_cannot_be_served_is_refused(
    gateway: Gateway, path: str, status: int, detail: str
) -> None:
    """Before the upgrade, in one sentence: silence would look like a quiet market."""
    with (
        pytest.raises(InvalidStatus) as caught,
        connect(f"ws://{gateway.host}:{gateway.port}{path}"),
    ):
        pass
    answer = caught.value.response
    assert answer.status_code == status
    assert json.loads(answer.body)["detail"] == detail


def test_the_address_may_ask_for_fewer_updates(gateway: Gateway) -> None:
    """As a subscribe may: whole windows, a minute at most."""
    with gateway.stream(f"?keys={SAMSUNG}&min_interval_ms=3999") as stream:
        assert stream.take("ack")["min_interval_ms"] == 4_000


def test_the_address_may_ask_for_rows_by_position(
    publisher: Publisher, gateway: Gateway
) -> None:
    """As a subscribe may; an unknown field is told, and the connection stays."""
    publisher.publish(make_row(SAMSUNG, price="0.30"))
    gateway.wait_until(2)
    with gateway.stream(f"?keys={SAMSUNG}&fields=price,seq") as stream:
        assert stream.take("ack")["names"] == {"0": SAMSUNG}
        assert stream.take("snapshot")["data"] == [[0, 0.3, 1]]
        publisher.publish(make_row(SAMSUNG, seq=2), make_row(HYNIX, seq=2))
        assert stream.take("update")["data"] == [[0, 199500, 2]]
    with gateway.stream(f"?keys={SAMSUNG}&fields=prize") as stream:
        assert stream.take("error")["message"].startswith("fields: 'prize'")
        stream.say(op="list")
        assert stream.take("ack")["count"] == 0


def test_a_stream_without_an_upgrade_is_told_so(gateway: Gateway) -> None:
    """And where it is over plain HTTP."""
    status, body, headers = gateway.fetch("/v1/stream?keys=*")
    assert (status, json.loads(body)["code"]) == (426, "upgrade_required")
    assert headers["upgrade"] == "websocket"


def test_the_sub_protocol_is_named_if_the_client_names_it(gateway: Gateway) -> None:
    """A browser that asks for tick.v1 is told that it got it."""
    with gateway.stream(subprotocols=["tick.v1"]) as stream:
        assert stream.connection.subprotocol == "tick.v1"
    with gateway.stream() as stream:
        assert stream.connection.subprotocol is None


@pytest.mark.parametrize(
    ("message", "code"),
    [(b"\x00", 1003), ('"' + "x" * 70_000 + '"', 1009)],
    ids=["binary", "too large"],
)
def test_what_no_client_should_send_closes(
    gateway: Gateway, message: bytes | str, code: int
) -> None:
    """Binary frames and huge ones end the connection with their code."""
    with gateway.stream() as stream:
        stream.connection.send(message)
        assert stream.close_code() == code
    eventually(lambda: gateway.health()["clients"] == 0)


def test_a_fault_of_ours_is_told_as_the_answer_to_its_message(
    gateway: Gateway,
) -> None:
    """With its id: or a client would wait for the answer for good."""
    with gateway.stream() as stream:
        [client] = gateway.hub.clients()
        client.commands.delivery = None  # type: ignore[assignment]
        stream.say(op="subscribe", id=7, keys=["*"])
        error = stream.take("error")
        assert (error["id"], error["code"]) == (7, "internal")


def test_a_heartbeat_comes_when_nothing_else_does(
    publisher: Publisher, redis_url: str
) -> None:
    """It says up to where the client has everything."""
    publisher.publish(make_row())
    with running_gateway(redis_url, heartbeat_ms=50) as gateway:
        gateway.wait_for("reloads")
        with gateway.stream() as stream:
            heartbeat = stream.take("heartbeat")
            assert (heartbeat["epoch"], heartbeat["offset"]) == (EPOCH, 1)


def test_a_planned_stop_is_announced_and_closes_with_1012(gateway: Gateway) -> None:
    """Clients are told when to come back."""
    with gateway.stream() as stream:
        gateway.stop()
        notice = stream.take("notice")
        assert (notice["code"], notice["message"]) == ("restart", "planned stop")
        assert 0 <= notice["reconnect_after_ms"] <= 3_000
        assert stream.close_code() == 1012


@pytest.fixture
def stalled(gateway: Gateway) -> Iterator[StalledReader]:
    """A client of everything that does not read."""
    reader = StalledReader(gateway, "*")
    yield reader
    reader.close()


def fill(publisher: Publisher, windows: int) -> None:
    """Publish windows large enough to fill every buffer on the way to a client."""
    instruments = make_isins(300)
    for seq in range(1, windows + 1):
        publisher.publish(*(make_row(isin, seq=seq) for isin in instruments))


def test_a_slow_client_gets_one_newest_update(
    publisher: Publisher, gateway: Gateway, stalled: StalledReader
) -> None:
    """What it missed is one merged frame, and it cost the others nothing."""
    eventually(lambda: gateway.health()["clients"] == 1)
    with gateway.stream() as other:
        other.subscribe("*")
        fill(publisher, 60)
        while other.take("update")["offset"] < 61:
            pass
    updates = list(stalled.updates_until(61))
    assert len(updates) < 10, "stale windows were queued"
    assert sum(update.get("merged", 1) for update in updates) == 60
    # A gateway that is slow itself has merged some of them before.
    assert updates[-1]["merged"] > 1
    assert {item["seq"] for item in updates[-1]["data"]} == {60}
    assert gateway.count("windows_merged") > 40


def test_a_client_that_takes_nothing_is_closed(
    publisher: Publisher, redis_url: str
) -> None:
    """After the patience configured it is let go; if it wakes up it learns why."""
    with running_gateway(redis_url, Bounds(slow_close_s=0.2)) as gateway:
        gateway.wait_for("reloads")
        stalled = StalledReader(gateway, "*")
        eventually(lambda: gateway.health()["clients"] == 1)
        fill(publisher, 20)
        gateway.wait_for("clients_slow_closed")
        eventually(lambda: gateway.health()["clients"] == 0)
        opcode, payload = stalled.read()
        while opcode not in (8, END):
            opcode, payload = stalled.read()
        assert (opcode, int.from_bytes(payload[:2])) == (8, 4408)
        stalled.close()


def test_a_client_that_reads_no_answers_is_not_read(redis_url: str) -> None:
    """Its messages pile up on its own side, not in the gateway."""
    with running_gateway(redis_url, messages_per_second=500_000) as gateway:
        stalled = StalledReader(gateway, "*")
        message = json.dumps({"op": "subscribe", "keys": ["x" * 20_000]}).encode()
        header = b"\x81\xfe" + len(message).to_bytes(2) + b"\0\0\0\0"
        stalled.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            stalled.socket.sendall((header + message) * 1_000)
        with gateway.stream() as other:
            other.subscribe(SAMSUNG)
        stalled.close()
        eventually(lambda: gateway.health()["clients"] == 0)


def test_a_feed_that_falls_silent_is_told(client: redis.Redis, redis_url: str) -> None:
    """Clients hear when windows stop and when they are back, late comers too."""
    publisher = Publisher(client, window_ms=100)
    publisher.publish()
    with running_gateway(redis_url, heartbeat_ms=50) as gateway:
        gateway.wait_for("reloads")
        with gateway.stream() as stream:
            assert stream.take("status")["feed"] == "stale"
            with gateway.stream() as late:
                assert late.take("status")["feed"] == "stale"

            def is_told() -> bool:
                publisher.publish()
                return json.loads(stream.raw()).get("feed") == "live"

            eventually(is_told)


def test_a_job_that_starts_is_told(client: redis.Redis, redis_url: str) -> None:
    """Windows are missing, and will come; once nobody is about to, they only are."""
    publisher = Publisher(client, window_ms=100)
    publisher.publish()
    field = candidate_field("job")
    seconds, _ = client.time()
    value = encode_candidate("host:1:a", (seconds + 600) * 1_000)
    client.hset(publisher.keys.meta, field, value)
    with (
        running_gateway(redis_url, heartbeat_ms=50) as gateway,
        gateway.stream() as stream,
    ):
        # On a busy machine a look at Redis may take too long, and says nothing of jobs.
        while (status := stream.take("status"))["feed"] != "starting":
            assert status["feed"] == "stale"
        assert status["message"] == "the throttle job is starting"
        eventually(
            lambda: [r["code"] for r in gateway.health()["reasons"]] == ["starting"]
        )
        client.hdel(publisher.keys.meta, field)
        assert stream.take("status")["feed"] == "stale"
        eventually(
            lambda: [r["code"] for r in gateway.health()["reasons"]] == ["feed_stale"]
        )
