"""REST: latest quotes, recent windows, health."""

import json

import pytest
import redis

from tests.conftest import eventually, free_port
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    EPOCH,
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_row,
)
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis


def test_quotes_are_every_issues_latest(publisher: Publisher, gateway: Gateway) -> None:
    """Sorted by ISIN, with the position they are of."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    gateway.wait_until(2)
    status, body = gateway.get("/v1/quotes")
    answer = json.loads(body)
    assert status == 200
    assert [row["isin"] for row in answer.pop("data")] == [HYNIX, SAMSUNG]
    assert answer == {
        "epoch": EPOCH,
        "offset": 2,
        "window": FIRST_WINDOW + 4_000,
        "count": 2,
    }


def test_quotes_may_be_picked(publisher: Publisher, gateway: Gateway) -> None:
    """Issues that never traded are left out, bad ISINs are named."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    gateway.wait_until(2)
    answer = json.loads(gateway.get(f"/v1/quotes?isins={SAMSUNG},{NAVER}")[1])
    assert [row["isin"] for row in answer["data"]] == [SAMSUNG]
    status, body = gateway.get(f"/v1/quotes?isins={SAMSUNG},*")
    assert (status, json.loads(body)["error"]["code"]) == (400, "bad_isin")


def test_a_quote_is_the_exact_row(publisher: Publisher, gateway: Gateway) -> None:
    """The text of its price is the one that was published."""
    row = make_row(price="0.30")
    publisher.publish(row)
    gateway.wait_until(2)
    assert gateway.get(f"/v1/quotes/{SAMSUNG}") == (200, row.body)


@pytest.mark.parametrize(
    ("isin", "status", "code", "words"),
    [
        (SAMSUNG, 404, "unknown_key", f"{SAMSUNG} has not traded yet"),
        ("KR7005930004", 400, "bad_isin", "check digit is 3"),
        ("005930", 400, "bad_isin", "ask by ISIN"),
    ],
)
def test_a_quote_there_is_not_says_why(
    gateway: Gateway, isin: str, status: int, code: str, words: str
) -> None:
    """An unknown issue and a bad ISIN are different answers."""
    got, body = gateway.get(f"/v1/quotes/{isin}")
    error = json.loads(body)["error"]
    assert (got, error["code"]) == (status, code)
    assert words in error["message"]


def test_windows_are_told_newest_first(publisher: Publisher, gateway: Gateway) -> None:
    """With their rows and trades, or without."""
    publisher.publish(make_row(price="0.30", trades=5))
    status, body = gateway.get("/v1/windows?limit=2")
    newest, empty = json.loads(body)["data"]
    assert (status, newest["offset"], empty["offset"]) == (200, 2, 1)
    assert b'"price":0.30,' in body
    assert (newest["count"], newest["data"][0]["trades"]) == (1, 5)
    assert (newest["windows"], empty["data"]) == (1, [])
    bare = json.loads(gateway.get("/v1/windows?rows=false")[1])
    assert all("data" not in window for window in bare["data"])
    assert bare["count"] == 2


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "from=-1", "to=soon"]
)
def test_a_bad_question_is_answered_with_the_field(
    gateway: Gateway, query: str
) -> None:
    """Errors have one form everywhere."""
    status, body = gateway.get(f"/v1/windows?{query}")
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (400, "bad_request")
    assert error["message"].startswith(query.partition("=")[0] + ": ")


def test_the_gateway_is_ready_while_windows_arrive(
    client: redis.Redis, redis_url: str
) -> None:
    """Not before the first one, and no longer than three windows after the last."""
    publisher = Publisher(client, window_ms=300)
    publisher.publish()
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        assert gateway.get("/health/live") == (200, b'{"live":true}')
        assert gateway.get("/health/ready")[0] == 503
        assert gateway.health()["reason"] == "no window yet"
        publisher.publish(make_row())
        health = eventually(lambda: (h := gateway.health())["ready"] and h)
        assert (health["epoch"], health["offset"]) == (EPOCH, 2)
        assert (health["issues"], health["clients"]) == (1, 0)
        eventually(lambda: gateway.get("/health/ready")[0] == 503)
        assert gateway.health()["reason"].startswith("no window for ")


def test_a_gateway_without_redis_says_so() -> None:
    """It serves, is not ready, and cannot read the window log."""
    with running_gateway(f"redis://127.0.0.1:{free_port()}/0") as gateway:
        assert gateway.get("/health/ready")[0] == 503
        assert gateway.get("/v1/quotes")[0] == 200
        status, body = gateway.get("/v1/windows")
        assert (status, json.loads(body)["error"]["code"]) == (503, "unavailable")
