"""What a token allows, on every way on which a gateway tells anything."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import pytest
import redis
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.conftest import eventually
from tests.gateway.bar_publisher import FIRST_MS, BarPublisher, make_bar
from tests.gateway.conftest import publish_analytics
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_group, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis

ISIN = re.compile(r"KR7\d{9}")
ALL = {SAMSUNG, HYNIX, NAVER}

KINDS = {
    "everything": (None, ALL),
    "one instrument": ([SAMSUNG], {SAMSUNG}),
    "a market": (["market:KOSDAQ"], {NAVER}),
    "a sector": (["sector:chips"], {SAMSUNG, HYNIX}),
    "a group": (["group:market:KOSPI"], set()),
    "nothing": ([], set()),
    "bars of an instrument": ([f"bars:1m:{SAMSUNG}"], set()),
}
"""Keys of a token, and the instruments that are told of to whoever shows it."""

ASKED = {
    "/v1/quotes": [
        *("", "?fields=day,name", "?market=KOSPI", "?sector=chips"),
        *(f"?isins={HYNIX}", "?codes=000660,035420", f"?isins={SAMSUNG}"),
    ],
    "/v1/quotes/{instrument}/history": ["", "?limit=1", "?from=1", "?limit=2&from=1"],
    "/v1/bars/{instrument}": [f"?interval={name}" for name in ("1m", "5m", "1h", "1d")],
    "/v1/instruments": ["", "?q=s", "?market=KOSPI", "?sector=chips"],
    "/v1/windows": ["", "?limit=1"],
}
"""What is asked for with some routes; without a word, each is asked for as it is."""


@pytest.fixture
def market(publisher: Publisher, client: redis.Redis) -> Publisher:
    """Three instruments with a trade each, their groups, bars and all else there is."""
    publisher.list_instruments()
    group = make_group("market:KOSPI")
    publisher.publish(make_row(), make_row(HYNIX), make_row(NAVER), groups=[group])
    publish_analytics(BarPublisher(client))
    return publisher


@contextmanager
def guarded(redis_url: str, folder: Path) -> Iterator[Gateway]:
    """Run a gateway that asks for tokens."""
    path = folder / "token.key"
    path.write_text(SECRET)
    with running_gateway(
        redis_url,
        token_key_file=path,
        firehose_public=True,
        rows_per_second=1_000_000,
        requests_per_second=10_000,
    ) as gateway:
        gateway.wait_for("reloads")
        eventually(
            lambda: b"005930" in ask(gateway, "/v1/instruments", make_token())[1]
        )
        yield gateway


def ask(gateway: Gateway, path: str, token: str) -> tuple[int, bytes]:
    """Return the answer to a request with a token."""
    status, body, _ = gateway.fetch(path, Authorization=f"Bearer {token}")
    return status, body


def routes(gateway: Gateway) -> list[str]:
    """Return all that can be asked for at the public port, of each instrument."""
    document = json.loads(gateway.get("/v1/openapi.json")[1])
    asked: list[str] = []
    for path in document["paths"]:
        if path in ("/v1/sse", "/v1/firehose"):
            continue
        for query in ASKED.get(path, [""]):
            for instrument in (SAMSUNG, HYNIX, "000660", NAVER):
                filled = path.format(
                    instrument=instrument, group=quote("group:market:KOSPI"), end_ms=1
                )
                asked.append(filled + query)
    return list(dict.fromkeys(asked))


def stream_frames(gateway: Gateway, token: str, *keys: str) -> list[str]:
    """Return what a stream says until it has answered the keys and a ping."""
    url = f"ws://{gateway.host}:{gateway.port}/v1/stream"
    frames: list[str] = []
    messages = [
        {"op": "auth", "token": token},
        {"op": "subscribe", "keys": keys},
        {"op": "unsubscribe", "keys": ["000660", "bars:1m:000660"]},
        {"op": "ping"},
    ]
    with connect(url, compression=None) as connection:
        # A gateway that refuses the token closes while we send.
        with suppress(ConnectionClosed):
            for number, message in enumerate(messages):
                connection.send(json.dumps({"id": number, **message}))
        # What a subscription brings may come after the answer to the ping.
        until_s = time.monotonic() + 30
        with suppress(TimeoutError, ConnectionClosed):
            while True:
                left_s = until_s - time.monotonic()
                frames.append(str(connection.recv(timeout=max(0.0, left_s))))
                if '"type":"pong"' in frames[-1]:
                    until_s = time.monotonic() + 1
    return frames


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_told_outside_of_a_tokens_rights(
    market: Publisher, redis_url: str, tmp_path: Path, kind: str
) -> None:
    """Not over any route, by no name, and in no refusal; but all that is within them.

    Who names an ISIN himself is told nothing by its being repeated.
    """
    keys, allowed = KINDS[kind]
    claims = {} if keys is None else {"tick": {"keys": keys}}
    token = make_token(**claims)
    told: set[str] = set()
    with guarded(redis_url, tmp_path) as gateway:
        for path in routes(gateway):
            status, body = ask(gateway, path, token)
            assert status != 500, path
            found = set(ISIN.findall(body.decode()))
            told |= found
            named = set(ISIN.findall(path))
            assert found <= allowed | named, path
            if status == 200:
                assert found <= allowed, path
        wanted = [
            *(SAMSUNG, "000660", "035420", "market:KOSPI", "sector:chips", "*"),
            *(
                "group:market:KOSPI",
                "bars:1m:000660",
                f"bars:1d:{SAMSUNG}",
                "bars:1m:*",
            ),
        ]
        frames = stream_frames(gateway, token, *wanted)
    assert told & allowed == allowed
    asked_for = {SAMSUNG}
    for frame in frames:
        assert set(ISIN.findall(frame)) <= allowed | asked_for, frame
        if '"data"' in frame or '"bars"' in frame:
            items = json.loads(frame)
            rows = [*items.get("data", ()), *items.get("bars", ())]
            assert {row["isin"] for row in rows} <= allowed


def test_a_code_is_told_to_none_but_who_may_have_its_instrument(
    market: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Neither over the stream nor over REST; he is refused by the name he has used."""
    token = make_token(tick={"keys": [SAMSUNG]})
    with guarded(redis_url, tmp_path) as gateway:
        ack = json.loads(stream_frames(gateway, token, "000660", "005930")[2])
        assert ack["codes"] == {"005930": SAMSUNG}
        assert [r["key"] for r in ack["rejected"]] == ["000660"]
        for path in ("/v1/quotes/000660", "/v1/quotes?codes=000660"):
            status, body = ask(gateway, path, token)
            assert (status, json.loads(body)["code"]) == (403, "not_allowed")
            assert b"000660: not in your token" in body
        status, _, _ = gateway.fetch("/v1/quotes/000660/history")
        assert status == 401


def test_half_a_character_in_a_token_is_refused(
    market: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """With 401, over REST and on the stream."""
    token = make_token(tick={"keys": ["\ud800"]})
    with guarded(redis_url, tmp_path) as gateway:
        assert ask(gateway, "/v1/quotes", token)[0] == 401
        assert "not_allowed" in stream_frames(gateway, token, SAMSUNG)[1]


INTERVAL_MS = 3_000

WINDOW_MS = 500

PRICE = re.compile(r"7000\d{3}\.25")
"""A price of the windows of the next test, one of each."""


class Prices:
    """Publishes a window with another price every half second, and bars with it."""

    def __init__(self, client: redis.Redis) -> None:
        self.publisher = Publisher(client, epoch="timed", window_ms=WINDOW_MS)
        self._bars = BarPublisher(client)
        self._stopping = Event()
        self._thread = Thread(target=self._publish)
        self.number = self.late = 0

    def __enter__(self) -> "Prices":
        self._thread.start()
        eventually(lambda: self.number > 2)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _publish(self) -> None:
        end_ms = time.time_ns() // 1_000_000 // WINDOW_MS * WINDOW_MS
        while not self._stopping.is_set():
            self.number += 1
            price = f"{7_000_000 + self.number}.25"
            row = make_row(price=price, seq=self.number)
            self.publisher.publish_at(end_ms, row)
            # The trades of a window are before its end.
            minute = (end_ms - 1 - FIRST_MS) // 60_000
            bar = make_bar(
                minute=minute, prices=" ".join([price] * 4), trades=self.number
            )
            self._bars.publish(bar, clock_ms=end_ms)
            self._bars.publish_movers([bar], self.number)
            self.late += time.time_ns() // 1_000_000 - end_ms > WINDOW_MS
            end_ms += WINDOW_MS
            while (now_ms := time.time_ns() // 1_000_000) < end_ms:
                if self._stopping.wait((end_ms - now_ms) / 1_000):
                    return


def test_no_two_prices_of_an_instrument_are_told_in_a_tokens_interval(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Over all routes and streams together, however often they are asked.

    Where a window is late, an interval begins without it, and history has another price
    of it in the end: as many more may be told as this machine has paused.
    """
    Publisher(client).list_instruments()
    token = make_token(tick={"min_interval_ms": INTERVAL_MS})
    seen: set[str] = set()
    pauses = 0
    with Prices(client) as prices, guarded(redis_url, tmp_path) as gateway:
        paths = [path for path in routes(gateway) if HYNIX not in path]
        began_s, first = time.monotonic(), prices.number
        url = f"ws://{gateway.host}:{gateway.port}/v1/stream"
        with connect(url, compression=None) as stream:
            stream.send(json.dumps({"op": "auth", "token": token}))
            while time.monotonic() - began_s < 4 * INTERVAL_MS / 1_000:
                now_ms = time.time_ns() // 1_000_000
                recent = [
                    f"/v1/quotes/{SAMSUNG}/history?limit=1&{bound}={now_ms - back}"
                    for back in (0, 500, 1_000, 1_500)
                    for bound in ("from", "to")
                ]
                for path in (*paths, *recent):
                    asked_s = time.monotonic()
                    _, body = ask(gateway, path, token)
                    pauses += time.monotonic() - asked_s > WINDOW_MS / 1_000
                    seen.update(PRICE.findall(body.decode()))
                keys = [SAMSUNG, f"bars:1m:{SAMSUNG}", f"bars:1d:{SAMSUNG}"]
                for op in ("unsubscribe", "subscribe"):
                    stream.send(json.dumps({"op": op, "keys": keys}))
                asked_s = time.monotonic()
                for frame in stream_frames(gateway, token, *keys, "*"):
                    seen.update(PRICE.findall(frame))
                pauses += time.monotonic() - asked_s > WINDOW_MS / 1_000
                with suppress(TimeoutError):
                    while True:
                        seen.update(PRICE.findall(str(stream.recv(timeout=0.01))))
        lasted_ms = (time.monotonic() - began_s) * 1_000
        published = prices.number - first
    # One of each interval since the first window, of the one that had begun before, and
    # what was there when the gateway came.
    intervals = (first * WINDOW_MS + lasted_ms) / INTERVAL_MS
    assert len(seen) <= intervals + 2 + pauses + prices.late, sorted(seen)
    assert published > 1.5 * (intervals + 2)
    assert len(seen) >= 2
