"""REST: bars, movers, bursts, moves, and the day of a quote."""

import json
from typing import Any

import pytest
import redis

from tests.conftest import eventually
from tests.doc_pages import blocks
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis


def ask(gateway: Gateway, path: str) -> dict[str, Any]:
    """Return an answer that has to be a good one."""
    status, body = gateway.get(path)
    assert status == 200, body
    answer: dict[str, Any] = json.loads(body)
    return answer


def minutes(answer: dict[str, Any]) -> list[int]:
    """Return the minutes at which the bars of an answer begin."""
    return [(bar["start"] - FIRST_MS) // MINUTE_MS for bar in answer["data"]]


def test_bars_of_an_instrument_are_oldest_first(listed: Gateway) -> None:
    """By ISIN or code, the newest of those within the bounds."""
    assert minutes(ask(listed, "/v1/bars/005930")) == [0, 1, 2, 3, 4, 5]
    assert minutes(ask(listed, f"/v1/bars/{SAMSUNG}?limit=2")) == [4, 5]
    start, end = FIRST_MS + 30_000, FIRST_MS + 4 * MINUTE_MS
    bounded = ask(listed, f"/v1/bars/005930?from={start}&to={end}&limit=3")
    assert minutes(bounded) == [2, 3, 4]
    assert (bounded["isin"], bounded["interval"], bounded["count"]) == (
        SAMSUNG,
        "1m",
        3,
    )
    assert ask(listed, "/v1/bars/035420")["data"] == []


def test_longer_bars_hold_their_parts(listed: Gateway) -> None:
    """However they are bounded, no bar lacks one of its minutes."""
    answer = ask(listed, "/v1/bars/005930?interval=5m&limit=2")
    assert minutes(answer) == [0, 5]
    assert [bar["volume"] for bar in answer["data"]] == [200, 40]
    assert [bar["closed"] for bar in answer["data"]] == [True, False]
    inside = FIRST_MS + 2 * MINUTE_MS
    assert minutes(ask(listed, f"/v1/bars/005930?interval=5m&from={inside}")) == [5]
    (first,) = ask(listed, f"/v1/bars/005930?interval=5m&to={inside}")["data"]
    assert first["volume"] == 200
    (day,) = ask(listed, "/v1/bars/005930?interval=1d")["data"]
    assert (day["volume"], day["end"] - day["start"]) == (240, 86_400_000)


def test_movers_bursts_and_moves_are_passed_on(listed: Gateway) -> None:
    """As the job has published them."""
    movers = ask(listed, "/v1/movers")
    assert [row["isin"] for row in movers["gainers"]] == [SAMSUNG, HYNIX]
    assert movers["losers"] == []
    assert movers["gainers"][0]["percent"] == 10
    (burst,) = ask(listed, "/v1/bursts")["data"]
    assert (burst["isin"], burst["trades"]) == (SAMSUNG, 4)
    (move,) = ask(listed, "/v1/moves?limit=1")["data"]
    assert (move["from"], move["to"], move["percent"]) == (100, 104, 4)


def test_a_quote_tells_its_day_if_asked(listed: Gateway) -> None:
    """With the change against the previous close, exact; and nothing unasked."""
    quote = ask(listed, f"/v1/quotes/{SAMSUNG}?fields=name,day")
    day = quote["day"]
    assert [day[n] for n in ("open", "high", "low", "close", "volume", "trades")] == [
        *(100, 120, 90, 110),
        *(240, 24),
    ]
    assert (day["prev_close"], day["change"]) == (199400, -199290)
    assert quote["instrument"] == {"name": "Samsung Electronics"}
    rows = ask(listed, "/v1/quotes?fields=day")["data"]
    percents = {row["isin"]: row["day"]["percent"] for row in rows}
    assert percents == {HYNIX: 1.6667, SAMSUNG: -99.9448}
    assert "day" not in ask(listed, f"/v1/quotes/{SAMSUNG}")
    exact = listed.get(f"/v1/quotes/{HYNIX}?fields=day")[1]
    assert b'"change":0.005,' in exact


def test_a_bar_and_a_day_of_the_page_have_these_fields(listed: Gateway) -> None:
    """In their order; a move comes as the job has published it."""
    bar, quote, *_ = map(json.loads, blocks("docs/bars.md", "json"))
    assert [*bar] == [*ask(listed, "/v1/bars/005930")["data"][0]]
    asked = ask(listed, f"/v1/quotes/{SAMSUNG}?fields=day")
    assert [*quote["day"]] == [*asked["day"]]


def test_one_answer_has_the_day_of_every_instrument(listed: Gateway) -> None:
    """Its prices, exact, in the order of ISINs."""
    _, body = listed.get("/v1/days")
    answer = json.loads(body)
    assert answer["count"] == 2
    hynix, samsung = answer["data"]
    assert samsung == {
        "isin": SAMSUNG,
        "start": FIRST_MS - 9 * 3_600_000,
        "end": FIRST_MS + 15 * 3_600_000,
        **{"open": 100, "high": 120, "low": 90, "close": 110},
    }
    assert hynix["isin"] == HYNIX
    assert b'"open":0.3,"high":0.31,"low":0.3,"close":0.305}' in body


def test_the_day_changes_while_the_stream_stands(
    publisher: Publisher, client: redis.Redis, gateway: Gateway
) -> None:
    """A late trade amends it, midnight in Seoul begins another; tags follow."""
    bars = BarPublisher(client)
    publisher.publish(make_row())
    gateway.wait_until(2)
    assert ask(gateway, "/v1/quotes?fields=day")["data"][0]["day"] is None
    bars.publish(make_bar())
    _, body, headers = gateway.fetch("/v1/quotes?fields=day")
    assert json.loads(body)["data"][0]["day"]["open"] == 100
    bars.publish(make_bar(minute=15 * 60, prices="7 7 7 7"))
    status, body, _ = gateway.fetch(
        "/v1/quotes?fields=day", If_None_Match=headers["etag"]
    )
    assert status == 200
    assert json.loads(body)["data"][0]["day"]["open"] == 7


def test_without_an_analytics_job_it_is_said(gateway: Gateway) -> None:
    """No empty chart that looks like a silent market."""
    for path in (f"/v1/bars/{SAMSUNG}", "/v1/movers", "/v1/days"):
        status, body = gateway.get(path)
        assert (status, json.loads(body)["code"]) == (404, "no_analytics")
    for path in ("/v1/bursts", "/v1/moves"):
        assert ask(gateway, path) == {"count": 0, "data": []}


def test_a_token_holds_for_bars_too(
    client: redis.Redis, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of its instruments; lists of the market are for those who may have everything."""
    key = tmp_path_factory.mktemp("key") / "token.key"
    key.write_text(SECRET)
    BarPublisher(client).publish(make_bar())
    with running_gateway(redis_url, token_key_file=key) as gateway:
        token = make_token(600, tick={"keys": [SAMSUNG]})
        shown = {"Authorization": f"Bearer {token}"}
        statuses = [
            gateway.fetch(path, **shown)[0]
            for path in (f"/v1/bars/{SAMSUNG}", f"/v1/bars/{HYNIX}", "/v1/movers")
        ]
        assert statuses == [200, 403, 403]
        assert gateway.get(f"/v1/bars/{SAMSUNG}")[0] == 401
        assert json.loads(gateway.fetch("/v1/days", **shown)[1])["count"] == 0
        Publisher(client).publish(make_row(SAMSUNG), make_row(HYNIX))
        gateway.wait_until(1)
        (day,) = json.loads(gateway.fetch("/v1/days", **shown)[1])["data"]
        assert day["isin"] == SAMSUNG
        with gateway.stream() as stream:
            stream.say(op="auth", token=token)
            stream.take("ack")
            stream.say(op="subscribe", keys=[f"bars:1m:{SAMSUNG}", "bars:1m:*"])
            ack = stream.take("ack")
            assert ack["accepted"] == [f"bars:1m:{SAMSUNG}"]
            assert ack["rejected"][0]["code"] == "not_allowed"
            assert stream.take("bars")["bars"][0]["isin"] == SAMSUNG


def test_bars_go_over_real_sockets(
    publisher: Publisher, client: redis.Redis, gateway: Gateway
) -> None:
    """Beside quotes and without them; given up, they stop."""
    bars = BarPublisher(client)
    bars.publish(make_bar())
    with gateway.stream(f"?keys=bars:1m:{SAMSUNG},bars:5m:{SAMSUNG}&last=2") as stream:
        assert stream.take("ack")["accepted"] == [
            f"bars:1m:{SAMSUNG}",
            f"bars:5m:{SAMSUNG}",
        ]
        first = stream.take("bars")
        assert {bar["interval"] for bar in first["bars"]} == {"1m", "5m"}
        bars.publish(make_bar(trades=5))
        second = stream.take("bars")
        assert {bar["trades"] for bar in second["bars"]} == {5}
        stream.say(op="list")
        assert stream.take("ack")["count"] == 2
        stream.say(op="unsubscribe", keys=[f"bars:1m:{SAMSUNG}", f"bars:5m:{SAMSUNG}"])
        assert stream.take("ack")["count"] == 0
        eventually(lambda: gateway.count("bar_updates_published") >= 1)
