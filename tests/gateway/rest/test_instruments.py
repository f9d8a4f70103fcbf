"""REST: the instrument list, and what each instrument did."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.instrument_table.instrument_entry import FIELDS
from tests.conftest import eventually
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_row,
)
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis


def points_of(gateway: Gateway, key: str, query: str = "") -> list[dict[str, Any]]:
    """Return the points of an instrument's history."""
    status, body = gateway.get(f"/v1/instruments/{key}/windows{query}")
    answer = json.loads(body)
    assert (status, answer["count"]) == (200, len(answer["data"]))
    points: list[dict[str, Any]] = answer["data"]
    return points


def test_the_instrument_list_is_told_in_the_order_of_isins(listed: Gateway) -> None:
    """Prices keep their text, what is not known is null."""
    status, body, headers = listed.fetch("/v1/instruments")
    answer = json.loads(body)
    assert (status, answer["count"]) == (200, 3)
    assert [instrument["isin"] for instrument in answer["data"]] == [
        HYNIX,
        SAMSUNG,
        NAVER,
    ]
    assert b'"prev_close":0.30,' in body
    assert answer["data"][2] == {
        "isin": NAVER,
        "code": "035420",
        "name": "NAVER",
        "market": "KOSDAQ",
        "sector": "internet & media",
        **dict.fromkeys(FIELDS[5:]),
    }
    again = listed.fetch("/v1/instruments", if_none_match=headers["etag"])
    assert (again[0], again[1]) == (304, b"")


def test_an_instruments_windows_come_oldest_first(listed: Gateway) -> None:
    """Those of before the gateway started, and those that came since."""
    eventually(lambda: len(points_of(listed, SAMSUNG)) == 2)
    for key in [SAMSUNG, "005930"]:
        points = points_of(listed, key)
        assert points[0] == {
            "window": FIRST_WINDOW + 4_000,
            "price": 0.3,
            "size": 40,
            "trades": 5,
            "time": FIRST_WINDOW * 1_000 + 1,
        }
        assert (points[1]["window"], points[1]["price"]) == (
            FIRST_WINDOW + 6_000,
            199600,
        )
        assert points_of(listed, key, "?limit=1") == points[1:]
        status, body, headers = listed.fetch(f"/v1/instruments/{key}/windows")
        assert b'"price":0.30,' in body
        again = listed.fetch(
            f"/v1/instruments/{key}/windows", if_none_match=headers["etag"]
        )
        assert (status, again[0], again[1]) == (200, 304, b"")


def test_an_instrument_that_never_traded_has_no_windows(listed: Gateway) -> None:
    """That is no error: a chart may wait for its first point."""
    assert points_of(listed, NAVER) == []


def test_a_question_that_cannot_be_answered_says_why(listed: Gateway) -> None:
    """Codes that no instrument has are told from ISINs that are none."""
    for path, status, code, words in [
        ("KR7005930004/windows", 400, "bad_isin", "check digit is 3"),
        ("005931/windows", 404, "unknown_key", "neither an ISIN nor the code"),
        (f"{SAMSUNG}/windows?limit=0", 400, "bad_request", "limit: "),
        (f"{SAMSUNG}/windows?limit=1001", 400, "bad_request", "limit: "),
    ]:
        got, body = listed.get(f"/v1/instruments/{path}")
        error = json.loads(body)
        assert (got, error["code"]) == (status, code)
        assert words in error["detail"]


def test_without_a_list_instruments_are_known_by_isin(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The list is empty, histories are kept all the same."""
    assert json.loads(gateway.get("/v1/instruments")[1]) == {"count": 0, "data": []}
    publisher.publish(make_row())
    eventually(lambda: points_of(gateway, SAMSUNG))
    status, body = gateway.get("/v1/instruments/005930/windows")
    assert (status, "not known here" in json.loads(body)["detail"]) == (404, True)


def test_a_gap_is_filled_in_the_history_too(
    publisher: Publisher, gateway: Gateway
) -> None:
    """A message that was lost, an outage, another epoch."""
    publisher.publish_lost(make_row(seq=1))
    publisher.publish(make_row(seq=2))
    publisher.publish_outage([make_row(seq=3)], [make_row(seq=4)])
    eventually(lambda: len(points_of(gateway, SAMSUNG)) == 4)


def test_a_token_narrows_what_is_told(
    publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Instruments that it does not allow are not listed, and have no history."""
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    publisher.list_instruments()
    publisher.publish(make_row())
    with running_gateway(redis_url, token_key_file=key) as gateway:
        assert gateway.get("/v1/instruments")[0] == 401
        assert gateway.get(f"/v1/instruments/{SAMSUNG}/windows")[0] == 401
        narrow = f"Bearer {make_token(tick={'keys': [SAMSUNG]})}"
        status, body, headers = gateway.fetch("/v1/instruments", authorization=narrow)
        assert [i["isin"] for i in json.loads(body)["data"]] == [SAMSUNG]
        assert (status, headers["vary"]) == (200, "Authorization")
        path = "/v1/instruments/{}/windows"
        assert gateway.fetch(path.format("005930"), authorization=narrow)[0] == 200
        assert gateway.fetch(path.format("000660"), authorization=narrow)[0] == 403
