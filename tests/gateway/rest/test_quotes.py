"""REST: latest quotes, all or some, and who has them already."""

import json
import re
from pathlib import Path

import pytest

from gateway.http.conditional import FOR_CACHES
from tests.doc_pages import text_of
from tests.gateway.issuer import SECRET, make_token
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


def isins_of(gateway: Gateway, path: str) -> list[str]:
    """Return which instruments an answer has."""
    status, body = gateway.get(path)
    assert status == 200
    return [row["isin"] for row in json.loads(body)["data"]]


def test_quotes_are_every_instruments_latest(listed: Gateway) -> None:
    """Sorted by ISIN, with the position they are of."""
    status, body = listed.get("/v1/quotes")
    answer = json.loads(body)
    assert status == 200
    assert [row["isin"] for row in answer.pop("data")] == [HYNIX, SAMSUNG]
    assert answer == {
        "epoch": EPOCH,
        "offset": 3,
        "window": FIRST_WINDOW + 6_000,
        "count": 2,
    }


def test_quotes_may_be_picked(listed: Gateway) -> None:
    """By what the list says of instruments; those that never traded are left out."""
    for query, isins in [
        (f"isins={SAMSUNG},{NAVER}", [SAMSUNG]),
        ("codes=000660,005930", [HYNIX, SAMSUNG]),
        ("market=KOSPI", [HYNIX, SAMSUNG]),
        ("market=KOSDAQ", []),
        ("sector=internet%20%26%20media", []),
        (f"isins={SAMSUNG}&market=KOSPI&sector=chips", [SAMSUNG]),
        (f"isins={SAMSUNG}&codes=000660", []),
    ]:
        assert isins_of(listed, f"/v1/quotes?{query}") == isins


def test_what_cannot_be_picked_is_named(listed: Gateway) -> None:
    """One bad key is an answer, not a gap."""
    for query, code in [
        (f"isins={SAMSUNG},*", "bad_isin"),
        ("isins=00593", "bad_isin"),
        ("codes=1", "unknown_key"),
        ("market=NYSE", "unknown_key"),
        ("sector=", "bad_request"),
    ]:
        status, body = listed.get(f"/v1/quotes?{query}")
        assert (status, json.loads(body)["code"]) == (400, code)


def test_a_quote_is_the_exact_row(listed: Gateway) -> None:
    """The text of its price is the one that was published."""
    for key in [SAMSUNG, "005930"]:
        row = make_row(SAMSUNG, "199600", seq=2)
        assert listed.get(f"/v1/quotes/{key}") == (200, row.body)


def test_a_quote_there_is_not_says_why(listed: Gateway) -> None:
    """An instrument without trades, a bad ISIN and an unknown code are different."""
    for key, status, code, words in [
        (NAVER, 404, "unknown_key", f"{NAVER} has not traded yet"),
        ("KR7005930004", 400, "bad_isin", "check digit is 3"),
        ("123456", 404, "unknown_key", "neither an ISIN nor the code of an instrument"),
    ]:
        got, body = listed.get(f"/v1/quotes/{key}")
        error = json.loads(body)
        assert (got, error["code"]) == (status, code)
        assert words in error["detail"]
    [shown] = re.findall(r'^\{"title".*\}$', text_of("docs/protocol.md"), re.MULTILINE)
    shown = shown.replace("KR7000020008", NAVER)
    assert json.loads(listed.get(f"/v1/quotes/{NAVER}")[1]) == json.loads(shown)


def test_who_has_an_answer_is_told_so(listed: Gateway) -> None:
    """With 304, the tag and the same headers, without a body."""
    for path in ["/v1/quotes", "/v1/quotes?market=KOSPI", f"/v1/quotes/{SAMSUNG}"]:
        status, body, headers = listed.fetch(path)
        assert (status, headers["cache-control"]) == (200, FOR_CACHES)
        assert headers["vary"] == "Origin"
        tag = headers["etag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            status, body, again = listed.fetch(path, if_none_match=known)
            assert (status, body, again["etag"].removeprefix("W/")) == (304, b"", tag)
            assert again["cache-control"] == FOR_CACHES
        assert listed.fetch(path, if_none_match='"other"')[0] == 200


def test_tags_change_with_the_stream_and_the_question(
    publisher: Publisher, gateway: Gateway
) -> None:
    """One instrument's tag stays as long as it does not trade."""

    def tag(path: str) -> str:
        return gateway.fetch(path)[2]["etag"]

    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    gateway.wait_until(2)
    some = f"/v1/quotes?isins={HYNIX}"
    one, other = f"/v1/quotes/{SAMSUNG}", f"/v1/quotes/{HYNIX}"
    paths = ["/v1/quotes", some, one, other]
    before = [tag(path) for path in paths]
    assert len(set(before)) == 4
    publisher.publish(make_row(SAMSUNG, seq=2))
    gateway.wait_until(3)
    after = [tag(path) for path in paths]
    assert [a == b for a, b in zip(before, after, strict=True)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_token_decides_what_is_told(
    publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Groups are narrowed, what is named and not allowed is refused, tags differ."""
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    wide = f"Bearer {make_token()}"
    narrow = f"Bearer {make_token(tick={'keys': [SAMSUNG]})}"
    with running_gateway(redis_url, token_key_file=key) as gateway:
        gateway.wait_until(1)
        for path, status in [
            ("/v1/quotes", 200),
            ("/v1/quotes?market=KOSPI", 200),
            ("/v1/quotes?codes=000660", 403),
            ("/v1/quotes/000660", 403),
            ("/v1/quotes/005930", 200),
            ("/v1/windows/latest", 403),
            (f"/v1/windows/{publisher.window}", 403),
        ]:
            got, body, headers = gateway.fetch(path, authorization=narrow)
            assert got == status, path
            if "data" in json.loads(body):
                assert json.loads(body)["count"] == 1
                assert headers["vary"] == "Authorization"
                everything = gateway.fetch(path, authorization=wide)
                assert json.loads(everything[1])["count"] == 2
                assert everything[2]["etag"] != headers["etag"]
        assert gateway.get("/v1/quotes?market=KOSPI")[0] == 401
        assert gateway.get("/v1/version")[0] == 200
