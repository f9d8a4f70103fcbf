"""The firehose over real sockets, from a real log in Redis."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.admission.bounds import Bounds
from gateway.admission.tokens import CLOCK_SKEW_S
from tests.conftest import eventually
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.operators.firehose.trade_log import TradeLog, looking, make_payload
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.gateway.servers import Gateway, running_gateway
from tests.redis_users import documented_users, url_of

pytestmark = pytest.mark.redis

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def commands(client: redis.Redis) -> Iterator[None]:
    """Have the server remember every command."""
    name = "slowlog-log-slower-than"
    usual: Any = client.config_get("slowlog-*")
    client.config_set("slowlog-max-len", 100_000)
    client.config_set(name, 0)
    yield
    client.config_set(name, usual[name])
    client.config_set("slowlog-max-len", usual["slowlog-max-len"])


def reads_of(client: redis.Redis) -> int:
    """Return how often the server was asked for entries of the log."""
    asked: Any = client.slowlog_get(100_000)
    return sum(one["command"].startswith(b"XREVRANGE tt:log:") for one in asked)


def status_of(gateway: Gateway, path: str = "/v1/firehose", **headers: str) -> int:
    """Return how a GET that is refused is answered."""
    return gateway.fetch(path, **headers)[0]


def pipeline_ms(gateway: Gateway) -> int:
    """Return when the pipeline was looked at, by the server's clock."""
    return int(json.loads(gateway.operators.get("/v1/pipeline")[1])["now_ms"])


def pages_of(gateway: Gateway) -> Any:
    """Return the paths of a port's pages, as it says."""
    return json.loads(gateway.get("/v1/version")[1])["pages"]


def viewers_of(gateway: Gateway) -> str:
    """Return the line of the metrics that counts viewers."""
    text = gateway.operators.get("/metrics")[1].decode()
    name = "tickthrottle_gateway_firehose_viewers "
    return next(line for line in text.splitlines() if line.startswith(name))


def test_every_trade_is_shown_or_counted_while_somebody_looks(
    client: redis.Redis, redis_url: str, commands: None
) -> None:
    """Of the trades that come then, and of no other; nobody looking, nothing is read.

    Two who look cost one read, and each has a rate of its own.
    """
    log = TradeLog(client)
    log.append(50)
    with running_gateway(redis_url) as gateway:
        with looking(gateway.operators, "?rate=5000") as viewer:
            assert viewer.next() == {"type": "firehose", "rate": 1_000}
            viewer.take()
            assert viewer.appended == 0
            log.append(6)
            log.append(6, HYNIX)
            viewer.take_until(12)
            assert (viewer.shown, viewer.left_out, viewer.unread) == (12, 0, 0)
            assert {row["isin"] for row in viewer.rows} == {SAMSUNG, HYNIX}
            assert viewer.bytes == sum(row["bytes"] for row in viewer.rows)
            assert viewers_of(gateway).endswith(" 1.0")
            with looking(gateway.operators, "?rate=1") as slow:
                assert slow.next() == {"type": "firehose", "rate": 1}
                slow.take()
                for _ in range(3):
                    log.append(3_000)
                viewer.take_until(9_012)
                slow.take_until(9_000)
                # A second's worth at once at most, by each one's own rate.
                assert viewer.most_shown <= 1_000
                assert slow.most_shown <= 1
                # Each look reads a part of so many: their bytes are estimated.
                assert viewer.unread > 0
                assert viewer.bytes == pytest.approx(
                    9_012 * len(make_payload(5_000)), rel=0.1
                )
        eventually(lambda: viewers_of(gateway).endswith(" 0.0"))
        still = reads_of(client)
        assert still > 0
        read = gateway.count("firehose_entries_read")
        log.append(10)
        # What the gateway asks Redis by itself, it asks twice a second.
        asked_ms = pipeline_ms(gateway)
        eventually(lambda: pipeline_ms(gateway) > asked_ms + 1_500)
        assert reads_of(client) == still
        assert gateway.count("firehose_entries_read") == read < 9_012
        shown = viewer.shown + slow.shown
        assert gateway.count("firehose_trades_shown") >= shown
        assert gateway.count("firehose_trades_left_out") > 0


def test_what_is_no_trade_is_shown_as_bytes(
    client: redis.Redis, redis_url: str
) -> None:
    """As in a log whose job has a decoder; large entries make a look smaller."""
    log = TradeLog(client)
    with running_gateway(redis_url) as gateway, looking(gateway.operators) as viewer:
        viewer.next()
        viewer.take()
        log.append_payloads(b"A3|005930|71500|12", b"x" * 1_000_000)
        viewer.take_until(2)
        assert viewer.bytes == 1_000_018
        eventually(lambda: viewer.take() is None and len(viewer.rows) == 2)
        assert viewer.rows[0] == {
            "bytes": 18,
            "reason": "not_json",
            "text": "A3|005930|71500|12",
        }
        assert viewer.rows[1]["text"] == "x" * 64


def test_a_log_that_is_away_is_a_sentence(client: redis.Redis, redis_url: str) -> None:
    """Whoever looks is told, and sees trades as soon as there are any."""
    with running_gateway(redis_url) as gateway, looking(gateway.operators) as viewer:
        viewer.next()
        told = viewer.next()
        assert told == {
            "type": "problem",
            "detail": "there is no trade log under tt:log",
        }
        log = TradeLog(client)
        viewer.take()
        log.append(3)
        viewer.take_until(3)
        # Made anew under the same name.
        client.flushdb()
        TradeLog(client).append(1)
        eventually(lambda: (viewer.next() or {}).get("type") == "problem")
        # The gateway stops while somebody looks.
        gateway.stop()
        while viewer.next() is not None:
            pass


def test_the_public_port_has_no_firehose_unless_it_is_allowed(
    redis_url: str, tmp_path: Path
) -> None:
    """By default neither page nor stream; allowed, it asks for a token for all."""
    key, operators = tmp_path / "token.key", tmp_path / "operators"
    key.write_text(SECRET)
    operators.write_text(TOKEN)
    with running_gateway(redis_url, operators_token_file=operators) as gateway:
        assert (status_of(gateway), status_of(gateway, "/firehose")) == (404, 404)
        assert pages_of(gateway) == ["/"]
        at_operators = gateway.operators
        assert pages_of(at_operators) == ["/", "/market", "/firehose"]
        assert status_of(at_operators) == 401
        assert status_of(at_operators, "/firehose") == 200
        with looking(at_operators, Authorization=f"Bearer {TOKEN}") as viewer:
            assert viewer.next() == {"type": "firehose", "rate": 200}
    with running_gateway(
        redis_url,
        Bounds(firehose_viewers=1),
        firehose_public=True,
        token_key_file=key,
    ) as gateway:
        assert status_of(gateway, "/firehose") == 200
        assert pages_of(gateway) == ["/", "/firehose"]
        assert status_of(gateway) == 401
        one = make_token(60, tick={"keys": [SAMSUNG]})
        assert status_of(gateway, Authorization=f"Bearer {one}") == 403
        whole = {"Authorization": f"Bearer {make_token(60)}"}
        other = {"Origin": "https://elsewhere.example"}
        assert status_of(gateway, **whole, **other) == 403
        with looking(gateway, **whole):
            # One place for all ports together.
            assert status_of(gateway, **whole) == 503
            assert status_of(gateway.operators) == 503
            assert gateway.count("firehose_viewers_refused") == 2
        eventually(lambda: viewers_of(gateway).endswith(" 0.0"))
        short = make_token(-CLOCK_SKEW_S + 2)
        with looking(gateway, Authorization=f"Bearer {short}") as viewer:
            while viewer.next() is not None:
                pass
        assert gateway.count("clients_token_expired") == 1


def test_who_goes_while_his_request_waits_gives_his_place_back(redis_url: str) -> None:
    """The connection is closed before the stream is begun."""
    bounds = Bounds(firehose_viewers=1)
    with running_gateway(redis_url, bounds, firehose_public=True) as gateway:
        gateway.hub.turns.charge([gateway.host], 0.2)
        with socket.create_connection((gateway.host, gateway.port)) as asking:
            asking.sendall(b"GET /v1/firehose HTTP/1.1\r\nHost: x\r\n\r\n")
        # This request waits for its turn behind that one.
        gateway.get("/v1/version")
        eventually(lambda: viewers_of(gateway).endswith(" 0.0"))


def test_there_may_be_no_firehose(redis_url: str) -> None:
    """Where it is turned off, or where a gateway may show one market only."""
    for settings, reason in (
        ({"firehose_rate": 0}, b"firehose_rate is 0"),
        ({"served_market": "KOSPI"}, b"one market"),
    ):
        with running_gateway(redis_url, **settings) as gateway:
            status, body = gateway.operators.get("/v1/firehose")
            assert (status, reason in body) == (404, True)
            assert pages_of(gateway.operators) == ["/", "/market"]
            assert status_of(gateway.operators, "/v1/firehose?rate=0") == 400


def test_the_documented_rights_are_enough(client: redis.Redis, redis_url: str) -> None:
    """Without the right to read the log, whoever looks is told which one is missing."""
    log = TradeLog(client)
    with (
        documented_users(client),
        running_gateway(url_of("tt-gateway", redis_url)) as gateway,
        looking(gateway.operators) as viewer,
    ):
        viewer.next()
        viewer.take()
        log.append(3)
        viewer.take_until(3)
        client.execute_command("ACL", "SETUSER", "tt-gateway", "-xrevrange")
        log.append(1)
        while (told := viewer.next()) is not None and told["type"] == "trades":
            pass
        assert told is not None
        assert "may not read the trade log" in told["detail"]
