"""Feeds from a local exchange that misbehaves: what is appended, told and counted."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http import HTTPStatus
from random import Random
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.adapter import AdapterFault, Limit
from ingest.adapters.connection import BATCH
from ingest.adapters.feed_log import MOST_TOLD
from ingest.exchanges.binance import Binance
from ingest.exchanges.upbit import Upbit
from tests.conftest import PATIENCE, eventually
from tests.dead_proxy import DEAD_PROXY
from tests.ingest.adapters.exchange import Exchange, Script, Session, exchanging
from tests.ingest.adapters.feeding import Running, feeding, wait_for
from tests.ingest.adapters.frames import binance, deals, upbit
from tests.ports import free_port
from tickthrottle_client.key_v1 import key_of

pytestmark = pytest.mark.redis

BTC = "BTCUSDT"


class Quick(Binance):
    """Binance without its limits, so that tests need not wait for them."""

    connects = Limit(1_000, 1.0)
    messages = Limit(1_000, 1.0)


def saying(*frames: str | bytes, then: Script = Session.wait) -> Script:
    """Return a script that sends frames, and then stays open unless told otherwise."""

    def script(session: Session) -> None:
        session.send(*frames)
        then(session)

    return script


def leave(_: Session) -> None:
    """Close the connection: the script ends."""


def trades(*numbers: int) -> list[str]:
    """Return a frame for each trade with these numbers."""
    return [binance(deal) for deal in deals(BTC, numbers)]


@contextmanager
def following(
    redis_url: str, *scripts: Script | HTTPStatus, **options: Any
) -> Iterator[tuple[Exchange, Running]]:
    """Run an exchange and a feed of Binance that follows it."""
    with (
        exchanging(*scripts) as exchange,
        feeding(redis_url, Quick, url=exchange.url, symbols=BTC, **options) as running,
    ):
        yield exchange, running


def numbers(client: redis.Redis, count: int) -> list[int]:
    """Return the numbers of the trades in the log, once there are so many."""
    return [trade["seq"] for trade in wait_for(client, count)]


def test_trades_are_in_the_log_as_they_were_told(
    redis_url: str, client: redis.Redis
) -> None:
    """Key, time, number, price and size, digit for digit; venue and side."""
    told = deals(BTC, range(1, 101), price="0.00000600", size="12.50")
    with following(redis_url, saying(*map(binance, told))) as (exchange, running):
        found = wait_for(client, 100)
    assert exchange.paths == ["/stream?streams=btcusdt@trade"]
    assert running.report.acknowledged == 100
    assert running.report.stopped
    assert found == [
        {
            "isin": key_of("QN", BTC),
            "time": deal.time_ms * 1000,
            "seq": deal.number,
            "price": "0.00000600",
            "size": "12.50",
            "venue": "BINANCE",
            "symbol": BTC,
            "side": "B",
        }
        for deal in told
    ]
    assert Decimal(found[0]["price"]) == Decimal("6E-6")


def test_a_feed_that_is_stopped_ends_at_once(
    redis_url: str, client: redis.Redis
) -> None:
    """Within two seconds, though the exchange says nothing."""
    with following(redis_url, Session.wait) as (exchange, running):
        eventually(lambda: exchange.connections)
        began_s = time.monotonic()
        running.stop.set()
        eventually(running.ended)
        assert time.monotonic() - began_s < 2 * PATIENCE
    assert running.report.acknowledged == 0


def test_after_a_close_repeated_trades_are_dropped_and_missing_ones_told(
    redis_url: str, client: redis.Redis
) -> None:
    """The second connection repeats 3 trades and begins 5 later."""
    first = saying(*trades(*range(1, 11)), then=leave)
    second = saying(*trades(*range(8, 11), *range(16, 21)))
    with capture_logs() as logs, following(redis_url, first, second):
        assert numbers(client, 15) == [*range(1, 11), *range(16, 21)]
        eventually(lambda: [e for e in logs if "missing" in e["event"]])
    again = [e for e in logs if e["event"] == "binance: connecting again"]
    assert again[0]["reason"] == "the exchange closed it (code 1000)"
    gap = next(e for e in logs if e["event"] == "binance: trades are missing")
    assert (gap["symbol"], gap["first"], gap["last"]) == (BTC, 11, 15)
    assert gap["missing"] == 5


def test_what_came_before_a_close_is_read(redis_url: str, client: redis.Redis) -> None:
    """Also if the exchange closes before it has heard anything."""
    told = deals("KRW-BTC", range(50))

    def script(session: Session) -> None:
        session.send(*(upbit(deal) for deal in told))

    class Patient(Upbit):
        def subscribe(self) -> Iterator[str]:
            # The close has come by then.
            time.sleep(0.3)
            yield "late"

    with (
        exchanging(script, Session.wait) as exchange,
        feeding(redis_url, Patient, url=exchange.url, symbols="KRW-BTC"),
    ):
        assert len(numbers(client, 50)) == 50


def test_a_connection_that_breaks_is_opened_again(
    redis_url: str, client: redis.Redis
) -> None:
    """Without a close frame, in the middle of a stream."""

    def vanish(session: Session) -> None:
        arrived.wait(30)
        session.vanish()

    arrived = threading.Event()
    with following(redis_url, saying(*trades(1, 2), then=vanish), saying(*trades(3))):
        assert numbers(client, 2) == [1, 2]
        arrived.set()
        assert numbers(client, 3) == [1, 2, 3]


def test_silence_ends_a_connection(redis_url: str, client: redis.Redis) -> None:
    """One that is open and brings nothing is opened again."""
    scripts = saying(*trades(1)), saying(*trades(2))
    with capture_logs() as logs, following(redis_url, *scripts, silence_s=0.4):
        assert numbers(client, 2) == [1, 2]
    again = [e for e in logs if e["event"] == "binance: connecting again"]
    assert again[0]["reason"] == "nothing came for 0.4 s"


def test_what_cannot_be_read_is_counted_and_loses_nothing_else(
    redis_url: str, client: redis.Redis
) -> None:
    """Half a frame, no JSON, a price below zero; then a good trade."""
    good, bad = deals(BTC, [1, 2])
    price = deals(BTC, [3], price="-1")[0]
    script = saying(
        *(binance(bad)[:40], b"\xff\xfe", "[]", binance(price)),
        *('{"e":"aggTrade","s":"X"}', '{"result":null,"id":1}'),
        *(binance(deals("OTHER", [1])[0]), binance(good)),
    )
    with following(redis_url, script) as (_, running):
        assert numbers(client, 1) == [1]
    assert running.report.refused == {"not_json": 2, "not_object": 1, "bad_price": 1}
    assert running.report.refusals[0].startswith("frame 1: not_json: frame '{")


def test_a_frame_that_is_too_large_is_counted(
    redis_url: str, client: redis.Redis
) -> None:
    """It is not read; the connection ends and is opened again."""

    class Small(Quick):
        max_frame_bytes = 4_096

    with (
        exchanging(saying("x" * 5_000), saying(*trades(1))) as exchange,
        feeding(redis_url, Small, url=exchange.url, symbols=BTC) as running,
    ):
        assert numbers(client, 1) == [1]
    assert running.report.refused == {"too_large": 1}


def test_too_many_requests_are_waited_out(
    redis_url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also at the start; the wait is the longer one."""
    monkeypatch.setattr("ingest.adapters.reconnect.LIMITED_WAIT_S", 0.2)
    scripts = HTTPStatus.TOO_MANY_REQUESTS, saying(*trades(1))
    with (
        capture_logs() as logs,
        exchanging(*scripts, retry_after="1") as exchange,
        feeding(redis_url, Quick, url=exchange.url, symbols=BTC),
    ):
        assert numbers(client, 1) == [1]
    again = next(e for e in logs if e["event"] == "binance: connecting again")
    assert again["reason"].startswith("127.0.0.1 refuses the connection with HTTP 429")
    assert again["wait_s"] == 1.0


def test_a_notice_of_a_shutdown_is_followed(
    redis_url: str, client: redis.Redis
) -> None:
    """The feed connects again before it is cut off."""
    first = saying('{"e":"serverShutdown","E":1773964800000}')
    with following(redis_url, first, saying(*trades(1))):
        assert numbers(client, 1) == [1]


def test_a_clock_that_is_off_is_told_once(redis_url: str, client: redis.Redis) -> None:
    """An hour ahead: the job would refuse these trades, so it is said at once."""
    ahead_ms = time.time_ns() // 1_000_000 + 3_600_000
    script = saying(*map(binance, deals(BTC, range(1, 5), time_ms=ahead_ms)))
    with capture_logs() as logs, following(redis_url, script):
        assert numbers(client, 4) == [1, 2, 3, 4]
        eventually(lambda: [e for e in logs if "clock" in e["event"]])
    [told] = [e for e in logs if "clock" in e["event"]]
    assert told["seconds"] == pytest.approx(3_600, abs=60)
    assert "max_ahead_ms" in told["advice"]


def test_an_exchange_that_cannot_be_reached_is_told_at_the_start(
    redis_url: str,
) -> None:
    """In one sentence, with its host."""
    url = f"ws://127.0.0.1:{free_port()}"
    with feeding(redis_url, Quick, url=url, symbols=BTC) as running:
        eventually(running.ended)
    [error] = running.errors
    assert isinstance(error, AdapterFault)
    assert str(error).startswith("feed binance: 127.0.0.1 cannot be reached: ")
    assert "\n" not in str(error)


def test_no_proxy_is_asked_for_this_machine(
    redis_url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exchange here, such as one under test, is beyond none."""
    for name, value in DEAD_PROXY.items():
        monkeypatch.setenv(name, value)
    with following(redis_url, saying(*trades(1, 2))):
        assert numbers(client, 2) == [1, 2]


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchanges are asked through the environment's proxy, if it is one for that."""
    monkeypatch.setenv("https_proxy", "ftp://u:secret@127.0.0.1:9")
    url = "wss://exchange.invalid"
    with feeding(redis_url, Quick, url=url, symbols=BTC) as running:
        eventually(running.ended)
    [error] = running.errors
    assert "NO_PROXY=exchange.invalid goes without it" in str(error)
    assert "secret" not in str(error)


def test_many_symbols_are_spread_over_connections(
    redis_url: str, client: redis.Redis
) -> None:
    """Each connection asks for its own, and all of them are followed."""

    def script(session: Session) -> None:
        symbol = session.path.rpartition("=")[2].partition("@")[0].upper()
        session.send(binance(deals(symbol, [1])[0]))
        session.wait()

    class Narrow(Quick):
        symbols_a_connection = 1

    with (
        exchanging(script) as exchange,
        feeding(redis_url, Narrow, url=exchange.url, symbols="A,B,C"),
    ):
        found = wait_for(client, 3)
    assert sorted(trade["symbol"] for trade in found) == ["A", "B", "C"]
    assert exchange.connections == 3


def test_an_error_of_the_request_ends_the_feed(redis_url: str) -> None:
    """The exchange's own words are in the sentence."""
    said = '{"error":{"name":"WRONG_FORMAT","message":"Format"}}'
    with (
        exchanging(saying(said)) as exchange,
        feeding(redis_url, Upbit, url=exchange.url, symbols="KRW-BTC") as running,
    ):
        eventually(running.ended)
    assert str(running.errors[0]) == (
        "feed upbit: the exchange refuses: WRONG_FORMAT: Format"
    )


def test_an_adapter_of_a_user_that_fails_is_told(redis_url: str) -> None:
    """With its class, and what it raised."""

    class Broken(Quick):
        def subscribe(self) -> list[str]:
            raise KeyError("symbol")

    with (
        exchanging(Session.wait) as exchange,
        feeding(redis_url, Broken, url=exchange.url, symbols=BTC) as running,
    ):
        eventually(running.ended)
    assert str(running.errors[0]) == "feed binance: Broken failed: KeyError: 'symbol'"


def test_random_trades_are_what_an_oracle_reads(
    redis_url: str, client: redis.Redis
) -> None:
    """Of three symbols over two connections that overlap: each once, every digit."""
    random = Random(7)
    told: list[bytes] = []
    for number in range(300):
        symbol = random.choice(["KRW-BTC", "KRW-0G", "USDT-1INCH"])
        price = random.choice(["6E-8", f"{random.random():.8f}1", f"{number + 1}.50"])
        told.append(upbit(deals(symbol, [number], price=price, size="1.0E-7")[0]))

    def first(session: Session) -> None:
        session.hear()
        session.send(*told[:200])

    def second(session: Session) -> None:
        session.hear()
        session.send(*told[150:])
        session.wait()

    with (
        exchanging(first, second) as exchange,
        feeding(
            redis_url,
            Upbit,
            url=exchange.url,
            symbols="KRW-BTC,KRW-0G,USDT-1INCH",
        ),
    ):
        found = wait_for(client, 300)
    by_number = {trade["trade_id"]: trade for trade in found}
    assert len(by_number) == len(found) == 300
    assert len({trade["seq"] for trade in found}) == 300
    for frame in told:
        fields = json.loads(frame, parse_float=Decimal)
        trade = by_number[fields["sid"]]
        assert Decimal(trade["price"]) == Decimal(str(fields["tp"]))
        assert Decimal(trade["size"]) == Decimal("0.0000001")
        assert trade["isin"] == key_of("QU", fields["cd"])
        assert trade["time"] == fields["ttms"] * 1000


def test_a_log_that_is_away_is_no_silence_of_the_exchange(
    redis_url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames wait while there is no room; nothing is lost, nobody connects again."""
    monkeypatch.setattr("ingest.feed.supply.WAITING_BYTES", 1)
    total = 3 * BATCH

    def script(session: Session) -> None:
        session.send(*trades(*range(1, total + 1)))
        while not session.exchange.ended.wait(0.1):
            session.send('{"result":null,"id":1}')

    with following(redis_url, script, silence_s=2) as (exchange, _):
        wait_for(client, 1)
        client.execute_command("CLIENT", "PAUSE", "2500", "WRITE")
        assert numbers(client, total) == [*range(1, total + 1)]
        assert exchange.connections == 1


def test_what_an_exchange_says_is_logged_up_to_a_bound(
    redis_url: str, client: redis.Redis
) -> None:
    """It may say it for ever; all of it is counted."""
    said = ['{"code":-1001,"msg":"Internal"}'] * 2 * MOST_TOLD
    with capture_logs() as logs, following(redis_url, saying(*said, *trades(1))):
        wait_for(client, 1)
    told = [e for e in logs if e["event"] == "binance: the exchange says"]
    assert len(told) == MOST_TOLD
    assert told[0]["words"] == "code -1001: Internal"


def test_an_exchange_that_wants_to_be_pinged_is(redis_url: str) -> None:
    """Upbit closes what was idle for two minutes."""

    class Hasty(Upbit):
        ping_every_s = 0.1

    with (
        exchanging(Session.wait) as exchange,
        feeding(redis_url, Hasty, url=exchange.url, symbols="KRW-BTC"),
    ):
        eventually(lambda: "PING" in exchange.heard)
