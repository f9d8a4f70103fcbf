"""Series at the gateway: who asks for one gets it, and nobody else hears of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.clients.patience import soon
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from throttle.contract.snapshot import Row, body_of
from tickthrottle_client import TickClient

pytestmark = pytest.mark.redis

KRX, NXT, REGULAR = (f"{SAMSUNG}@{name}" for name in ("KRX", "NXT", "regular"))


def of_series(row: Row, key: str) -> Row:
    """Return a row under the key of a series."""
    return row._replace(isin=key, body=body_of(key, row.body))


@pytest.fixture
def kept(publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway of two instruments, one of which has series."""
    publisher.list_instruments()
    publisher.publish()
    with running_gateway(redis_url) as running:
        running.wait_for("reloads")
        publish(publisher, "71900")
        running.wait_until(2)
        yield running


def publish(publisher: Publisher, price: str, seq: int = 1) -> None:
    """Publish a window: both instruments, and the first one's series."""
    row = make_row(SAMSUNG, price, seq=seq)
    series = [of_series(row, key) for key in (KRX, NXT, REGULAR)]
    publisher.publish(row, make_row(HYNIX, seq=seq), *series)


def isins_of(frame: Any) -> list[str]:
    """Return whose items a frame has."""
    return [item["isin"] for item in frame["data"]]


def test_who_asks_for_a_series_gets_it(kept: Gateway, publisher: Publisher) -> None:
    """By ISIN or code; snapshot and updates carry its key. Rubbish is named."""
    wrong = [f"{SAMSUNG}@nowhere", "KR7005930004@KRX", "999999@KRX"]
    with kept.stream() as stream:
        stream.say(op="subscribe", keys=[NXT, "005930@KRX", *wrong])
        ack = stream.take("ack")
        assert ack["accepted"] == [NXT, KRX]
        assert ack["codes"] == {"005930@KRX": KRX}
        refused = {one["key"]: one["code"] for one in ack["rejected"]}
        codes = ["unknown_key", "bad_isin", "unknown_key"]
        assert refused == dict(zip(wrong, codes, strict=True))
        assert sorted(isins_of(stream.take("snapshot"))) == [KRX, NXT]
        publish(publisher, "72000", seq=2)
        items = stream.take("update")["data"]
        assert [(i["isin"], i["price"]) for i in items] == [(KRX, 72000), (NXT, 72000)]


def test_nobody_else_hears_of_a_series(kept: Gateway, publisher: Publisher) -> None:
    """Neither by ``*``, nor by a market; beside ``*`` one may be asked for."""
    due = [HYNIX, SAMSUNG]
    with kept.stream() as every, kept.stream() as market, kept.stream() as both:
        keys = {every: ["*"], market: ["market:KOSPI"], both: ["*", NXT]}
        wanted = [due, due, [*due, NXT]]
        for stream, of_it in zip(keys, wanted, strict=True):
            items = stream.subscribe(*keys[stream])
            assert sorted(item["isin"] for item in items) == of_it
        publish(publisher, "72000", seq=2)
        assert [sorted(isins_of(one.take("update"))) for one in keys] == wanted
        both.say(op="unsubscribe", keys=["*"])
        both.take("ack")
        publish(publisher, "72100", seq=3)
        assert isins_of(both.take("update")) == [NXT]
    status, body = kept.get("/v1/quotes")
    assert (status, [row["isin"] for row in json.loads(body)["data"]]) == (200, due)


def test_rest_knows_series(kept: Gateway) -> None:
    """A quote by its key, those of an instrument with it, and its history."""
    status, body = kept.get(f"/v1/quotes/{NXT}?fields=name")
    quote = json.loads(body)
    assert (status, quote["isin"]) == (200, NXT)
    assert quote["instrument"]["name"] == "Samsung Electronics"
    status, body = kept.get(f"/v1/quotes?isins={NXT},{HYNIX}")
    assert [row["isin"] for row in json.loads(body)["data"]] == [HYNIX, NXT]
    status, body = kept.get("/v1/quotes/005930?fields=series")
    quote = json.loads(body)
    assert list(quote["series"]) == ["KRX", "NXT", "regular"]
    assert quote["series"]["NXT"]["isin"] == NXT
    status, body = kept.get(f"/v1/quotes/{HYNIX}?fields=series")
    assert json.loads(body)["series"] == {}
    status, body = kept.get(f"/v1/quotes/{SAMSUNG}@nowhere")
    assert (status, json.loads(body)["code"]) == (400, "bad_isin")
    assert "must be a venue in capitals" in json.loads(body)["detail"]


def test_bars_of_a_series(kept: Gateway, client: redis.Redis) -> None:
    """By REST and on the stream; whoever watches all instruments gets none."""
    bars = BarPublisher(client)
    minutes = [make_bar(isin, minute=1) for isin in (SAMSUNG, NXT)]
    bars.publish(*minutes, clock_ms=minutes[0].end_ms)
    status, body = kept.get(f"/v1/bars/{NXT}")
    assert (status, [bar["isin"] for bar in json.loads(body)["data"]]) == (200, [NXT])
    with kept.stream() as one, kept.stream() as every:
        for stream, key in ((one, f"bars:1m:{NXT}"), (every, "bars:1m:*")):
            stream.say(op="subscribe", keys=[key])
            stream.take("ack")

        def whose() -> list[list[str]]:
            frames = [stream.take("bars") for stream in (one, every)]
            return [[bar["isin"] for bar in frame["bars"]] for frame in frames]

        assert whose() == [[NXT], [SAMSUNG]]
        minutes = [make_bar(isin, minute=2) for isin in (SAMSUNG, NXT)]
        bars.publish(*minutes, clock_ms=minutes[0].end_ms)
        assert whose() == [[NXT], [SAMSUNG]]


def test_a_token_for_an_instrument_is_one_for_its_series(
    publisher: Publisher, redis_url: str, tmp_path: Any
) -> None:
    """And one for a series is for that alone."""
    key_file = tmp_path / "key"
    key_file.write_text(SECRET)
    publisher.publish()
    with running_gateway(redis_url, token_key_file=key_file) as running:
        running.wait_for("reloads")
        publish(publisher, "71900")
        running.wait_until(2)

        def status_of(key: str, *allowed: str) -> int:
            token = make_token(tick={"keys": list(allowed)})
            path = f"/v1/quotes/{key}"
            return running.fetch(path, Authorization=f"Bearer {token}")[0]

        assert status_of(NXT, SAMSUNG) == 200
        assert status_of(NXT, NXT) == 200
        assert status_of(SAMSUNG, NXT) == 403
        assert status_of(KRX, NXT) == 403


async def test_clients_keep_a_series_apart(kept: Gateway, publisher: Publisher) -> None:
    """In Python: who follows all hears of no series, though another one does."""
    every: list[str] = []
    one: list[str] = []
    url = f"ws://{kept.host}:{kept.port}/v1/stream"
    async with TickClient(url) as ticks:
        ticks.subscribe("*", lambda item: every.append(item["isin"]))
        ticks.subscribe(NXT, lambda item: one.append(item["isin"]))
        await soon(lambda: len(every) == 2 and one == [NXT])
        late: list[str] = []
        ticks.subscribe("*", lambda item: late.append(item["isin"]))
        assert sorted(late) == [HYNIX, SAMSUNG]
        publish(publisher, "72000", seq=2)
        await soon(lambda: len(one) == 2)
        assert sorted(set(every)) == [HYNIX, SAMSUNG]
        assert ticks.items[NXT]["price"] == 72000
