"""One address asks for as much as it may: others notice nothing."""

import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from select import select
from typing import Any

import pytest
import redis
from websockets.sync.client import connect

from gateway.admission.bounds import Bounds
from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.conftest import eventually
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_isins, make_row
from tests.gateway.servers import Gateway, Stream, running_gateway, upgrade_request

pytestmark = pytest.mark.redis

INSTRUMENTS = make_isins(200)
ELSEWHERE = ("127.0.0.9", 0)
"""Another address of this machine."""


@pytest.fixture
def market(publisher: Publisher, client: redis.Redis) -> Publisher:
    """Two hundred instruments with a trade, one of them with bars."""
    publisher.publish(*map(make_row, [SAMSUNG, *INSTRUMENTS]))
    BarPublisher(client).publish(make_bar(closed=True))
    return publisher


@contextmanager
def serving(redis_url: str, **settings: Any) -> Iterator[Gateway]:
    """Run a gateway that has read what is published."""
    with running_gateway(redis_url, **settings) as gateway:
        gateway.wait_for("reloads")
        yield gateway


def get_from(gateway: Gateway, source: tuple[str, int], path: str) -> int:
    """Return the status of a GET that comes from an address."""
    connection = HTTPConnection(
        gateway.host, gateway.port, timeout=10, source_address=source
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def ask_for_everything(stream: Stream) -> dict[str, Any]:
    """Subscribe to every instrument anew; return the answer."""
    stream.say(op="unsubscribe", keys=["*"])
    stream.say(op="subscribe", id=7, keys=["*"])
    return answer_of(stream, 7)


def answer_of(stream: Stream, message_id: int) -> dict[str, Any]:
    """Read on until a message is answered; return the answer."""
    while True:
        frame = stream.raw()
        if b'"id":%d,' % message_id in frame[:100]:
            answer: dict[str, Any] = json.loads(frame)
            return answer


def test_a_stream_that_asks_for_the_board_again_and_again_is_put_off(
    market: Publisher, redis_url: str
) -> None:
    """It is told for how long; what it costs nothing to say it may say meanwhile."""
    market.publish(*map(make_row, make_isins(2_000)[len(INSTRUMENTS) :]))
    with (
        serving(redis_url, messages_per_second=1_000) as gateway,
        gateway.stream() as stream,
        gateway.stream("?keys=*") as other,
    ):
        answers = [ask_for_everything(stream) for _ in range(40)]
        refused = [answer for answer in answers if answer["type"] == "error"]
        assert answers[0]["type"] == "ack"
        assert 0 < len(refused) < 30
        assert {answer["code"] for answer in refused} == {"rate_limited"}
        assert all(answer["retry_after_ms"] > 0 for answer in refused)
        assert gateway.count("work_refused") == len(refused)
        stream.say(op="ping", id=8)
        assert answer_of(stream, 8)["type"] == "pong"
        other.take("ack")
        other.take("snapshot")


def test_an_address_pays_for_all_its_streams_and_requests_together(
    market: Publisher, redis_url: str
) -> None:
    """What is refused to it says when to come again; another address is served."""
    path = f"/v1/quotes?isins={','.join(INSTRUMENTS)}"
    with serving(redis_url, rows_per_second=100) as gateway, ExitStack() as streams:
        for _ in range(3):
            streams.enter_context(gateway.stream("?keys=*"))
        statuses = [
            gateway.get(f"/v1/quotes?isins={','.join(INSTRUMENTS[:number])}")[0]
            for number in range(100, 200)
        ]
        assert (statuses[0], statuses[-1]) == (200, 429)
        status, body, headers = gateway.fetch(path)
        problem = json.loads(body)
        assert (status, problem["code"]) == (429, "rate_limited")
        assert "100 rows a second of an address or a token" in problem["detail"]
        assert int(headers["retry-after"]) >= 1
        assert gateway.fetch("/v1/sse?keys=*")[0] == 429
        assert gateway.close_code_of_a_new_stream() == 1013
        assert gateway.count("work_refused") >= 3
        assert get_from(gateway, ELSEWHERE, path) == 200
        assert gateway.operators.get("/v1/quotes")[0] == 200
        url = f"ws://{gateway.host}:{gateway.port}/v1/stream?keys=*"
        with connect(url, compression=None, source_address=ELSEWHERE) as connection:
            stream = Stream(connection)
            stream.take("ack")
            assert len(stream.take("snapshot")["data"]) == len(INSTRUMENTS) + 1


def test_a_token_pays_wherever_it_is_shown(
    market: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Its bearer is named by the issuer; another one's token is good all the same."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    settings = {"token_key_file": path, "rows_per_second": 30}
    market.publish(*map(make_row, make_isins(2_000)[len(INSTRUMENTS) :]))
    tokens = [make_token(sub=sub) for sub in ("a", "a", "b")]
    with serving(redis_url, **settings) as gateway:

        def ask(token: str, source: str) -> int:
            connection = HTTPConnection(
                gateway.host, gateway.port, timeout=10, source_address=(source, 0)
            )
            headers = {"Authorization": f"Bearer {token}"}
            connection.request("GET", "/v1/instruments?q=x", headers=headers)
            status = connection.getresponse().status
            connection.close()
            return status

        url = f"ws://{gateway.host}:{gateway.port}/v1/stream"
        with connect(url, compression=None) as connection:
            stream = Stream(connection)
            stream.say(op="auth", token=tokens[0])
            stream.take("ack")
            assert ask_for_everything(stream)["type"] == "ack"
        assert ask(tokens[1], "127.0.0.8") == 429
        assert ask(tokens[2], "127.0.0.8") == 200


def test_messages_have_a_price_even_if_nothing_is_sent_for_them(
    market: Publisher, redis_url: str
) -> None:
    """Long lists of keys, without a snapshot, in and out again."""
    with (
        serving(redis_url, rows_per_second=30, messages_per_second=50) as gateway,
        gateway.stream() as stream,
    ):
        codes = []
        for number in range(20):
            op = "unsubscribe" if number % 2 else "subscribe"
            further = {} if number % 2 else {"snapshot": False}
            stream.say(op=op, id=number, keys=INSTRUMENTS, **further)
            codes.append(answer_of(stream, number).get("code"))
        assert codes[0] is None
        assert codes[-1] == "rate_limited"
        assert None not in codes[codes.index("rate_limited") :]


def test_opening_streams_has_a_price(publisher: Publisher, redis_url: str) -> None:
    """However little they ask for."""
    with serving(redis_url, rows_per_second=2) as gateway:
        with gateway.stream():
            assert gateway.close_code_of_a_new_stream() == 1013
        assert gateway.count("work_refused") == 1


def test_the_same_quotes_are_built_once_in_whatever_order_they_are_asked_for(
    market: Publisher, redis_url: str
) -> None:
    """Fields, instruments: the tag is the same, only the first answer costs rows."""
    with serving(redis_url, rows_per_second=50) as gateway:
        tags = {
            gateway.fetch(f"/v1/quotes?fields={fields}")[2]["etag"]
            for fields in ("name,day,market", "market,day,name", "day,name,market,day")
            for _ in range(20)
        }
        assert len(tags) == 1
        named = {
            gateway.fetch(f"/v1/quotes?isins={isins}")[2]["etag"]
            for isins in (
                f"{SAMSUNG},{INSTRUMENTS[0]}",
                f"{INSTRUMENTS[0]},{SAMSUNG},{SAMSUNG}",
            )
        }
        assert len(named) == 1
        assert gateway.count("work_refused") == 0


def test_the_newest_day_of_many_instruments_reads_no_bars(
    client: redis.Redis, publisher: Publisher, redis_url: str
) -> None:
    """The job keeps it: a thousand keys are one question."""
    bars = [make_bar(isin, minute) for isin in INSTRUMENTS[:50] for minute in range(20)]
    BarPublisher(client).publish(*bars)
    with serving(redis_url) as gateway, gateway.stream() as stream:
        client.config_resetstat()
        keys = [f"bars:1d:{isin}" for isin in INSTRUMENTS[:50]]
        stream.say(op="subscribe", keys=keys)
        stream.take("ack")
        assert len(stream.take("bars")["bars"]) == 50
        read = client.info("commandstats")
        assert "cmdstat_zrange" not in read
        assert read["cmdstat_hmget"]["calls"] < 10


def test_a_subscribe_counts_the_bars_that_are_read_for_it(
    market: Publisher, redis_url: str
) -> None:
    """An hour has sixty of them; too many are refused, and nothing changes."""
    with serving(redis_url) as gateway, gateway.stream() as stream:
        keys = [f"bars:1h:{isin}" for isin in INSTRUMENTS[:6]]
        stream.say(op="subscribe", keys=keys, last=300)
        error = stream.take("error")
        assert error["code"] == "bad_request"
        assert "108000 bars are read for that, 100000 at most" in error["message"]
        stream.say(op="list")
        assert stream.take("ack")["count"] == 0


def test_nothing_is_read_for_a_client_that_has_gone(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """And others do not wait behind it."""
    publisher = Publisher(client, window_ms=60_000)
    bars = BarPublisher(client)
    bars.publish(make_bar(closed=True))
    for offset in range(1, 4):
        publisher.publish(make_row(seq=offset))
        with archiving(settings_of(redis_url, tmp_path)):
            wait_until_stored(client, offset)
    with serving(redis_url, archive_dir=tmp_path) as gateway:
        for _ in range(150):
            with socket.create_connection((gateway.host, gateway.port)) as leaving:
                request = f"GET /v1/bars/{SAMSUNG}?interval=1d&limit=1000 HTTP/1.1"
                leaving.sendall(f"{request}\r\nHost: x\r\n\r\n".encode())
        began_s = time.monotonic()
        assert get_from(gateway, ELSEWHERE, f"/v1/quotes/{SAMSUNG}/history") == 200
        assert time.monotonic() - began_s < 5
        eventually(lambda: gateway.count("requests_abandoned") > 0)
        assert get_from(gateway, ELSEWHERE, f"/v1/bars/{SAMSUNG}?interval=1d") == 200


def test_all_that_an_address_asks_for_comes_out_of_one_share(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Quotes, bars, the archive and the stream; others and operators pay nothing."""
    publisher = Publisher(client, window_ms=60_000)
    BarPublisher(client).publish(make_bar(closed=True))
    publisher.publish(make_row())
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, 1)
    many = {"rows_per_second": 10_000_000, "archive_dir": tmp_path}
    with serving(redis_url, **many) as gateway:
        turns = gateway.hub.turns
        # Nothing is paid back meanwhile.
        turns._clock = lambda: 0.0

        def spent(address: str) -> float:
            return turns._work_ms.spent_share(address, 0.0)

        shares = [spent(gateway.host)]
        for path in (
            "/v1/quotes",
            f"/v1/bars/{SAMSUNG}?interval=1d",
            f"/v1/quotes/{SAMSUNG}/history",
            "/v1/windows",
        ):
            assert gateway.get(path)[0] == 200
            shares.append(spent(gateway.host))
        with gateway.stream("?keys=*") as stream:
            stream.take("ack")
            eventually(lambda: spent(gateway.host) > shares[-1])
            shares.append(spent(gateway.host))
            stream.say(op="ping", id=1)
            assert answer_of(stream, 1)["type"] == "pong"
            eventually(lambda: spent(gateway.host) > shares[-1])
        assert shares == sorted(set(shares))
        assert gateway.operators.get("/v1/quotes")[0] == 200
        assert spent(ELSEWHERE[0]) == 0
        assert get_from(gateway, ELSEWHERE, "/v1/quotes") == 200
        assert spent(ELSEWHERE[0]) > 0


def test_who_has_had_his_share_waits_whatever_he_asks_for(
    market: Publisher, redis_url: str
) -> None:
    """Health, operators and others do not."""
    with serving(redis_url) as gateway, gateway.stream() as stream:
        gateway.hub.turns.charge([gateway.host], 1_000)
        stream.say(op="ping")
        with ExitStack() as held:
            waiting = [stream.connection.socket]
            request = b"GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n"
            for opening in (request, upgrade_request()):
                asking = socket.create_connection((gateway.host, gateway.port))
                waiting.append(held.enter_context(asking))
                asking.sendall(opening)
            assert gateway.get("/health/live")[0] == 200
            assert gateway.operators.get("/v1/quotes")[0] == 200
            assert get_from(gateway, ELSEWHERE, "/v1/quotes") == 200
            assert not select(waiting, [], [], 0)[0]


def test_a_planned_stop_has_no_trace_for_a_request_that_is_under_way(
    publisher: Publisher, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked has not read its answer."""
    many = make_isins(4_000)
    publisher.publish(*map(make_row, many))
    with (
        caplog.at_level(logging.ERROR),
        running_gateway(redis_url, Bounds(slow_close_s=200)) as gateway,
        ExitStack() as held,
    ):
        gateway.wait_for("reloads")
        for _ in range(5):
            waiting = held.enter_context(socket.socket())
            waiting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            waiting.connect((gateway.host, gateway.port))
            waiting.sendall(b"GET /v1/quotes HTTP/1.1\r\nHost: x\r\n\r\n")
            assert waiting.recv(10)
        gateway.stop()
        server = gateway.server
        assert server is not None
        eventually(lambda: not server.started or server.force_exit or _said(caplog))
    assert "Traceback" not in caplog.text
    assert "Exception in ASGI" not in caplog.text


def _said(caplog: pytest.LogCaptureFixture) -> bool:
    return "running task" in caplog.text
