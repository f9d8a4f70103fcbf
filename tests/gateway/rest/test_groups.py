"""REST: the figures of markets and sectors."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import FIRST_WINDOW, SAMSUNG, make_group, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis

KOSPI = "group:market:KOSPI"


@pytest.fixture
def traded(publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway that has the figures of two windows."""
    publisher.list_instruments()
    media = make_group("sector:internet & media", 2)
    publisher.publish(groups=[make_group("market:KOSPI", 5), media])
    with running_gateway(redis_url) as gateway:
        gateway.wait_for("reloads")
        value = make_group("market:KOSPI", 6, volume=12345678901234567890123)
        past = make_group("sector:of the past", 1)
        publisher.publish(make_row(), groups=[value, past, make_group("market:", 7)])
        gateway.wait_until(2)
        yield gateway


def test_all_groups_are_told_in_the_order_of_their_keys(traded: Gateway) -> None:
    """Each of the window it traded in last; what the table does not name is past."""
    status, body, headers = traded.fetch("/v1/groups")
    answer = json.loads(body)
    assert (status, answer["offset"], answer["count"]) == (200, 2, 3)
    told = [(g["group"], g["trades"], g["window"]) for g in answer["data"]]
    assert told == [
        ("group:market:", 7, FIRST_WINDOW + 4_000),
        (KOSPI, 6, FIRST_WINDOW + 4_000),
        ("group:sector:internet & media", 2, FIRST_WINDOW + 2_000),
    ]
    assert b'"volume":1234567890123456789012.3,' in body
    again = traded.fetch("/v1/groups", if_none_match=headers["etag"])
    assert (again[0], again[1]) == (304, b"")


def test_one_group_has_a_tag_of_its_own(traded: Gateway) -> None:
    """It changes when the group trades."""
    path = "/v1/groups/" + quote("group:sector:internet & media")
    status, body, headers = traded.fetch(path)
    assert (status, json.loads(body)["trades"]) == (200, 2)
    assert traded.fetch(path, if_none_match=headers["etag"])[0] == 304


def test_what_has_no_figures_is_not_found(traded: Gateway) -> None:
    """The sentence says why."""
    for key, code, words in [
        ("group:market:KOSDAQ", "unknown_key", "has not traded yet"),
        ("group:market:X", "unknown_key", "the group of a market of no instrument"),
        ("group:a/b", "unknown_key", "groups are called group:market:NAME"),
        (SAMSUNG, "unknown_key", "a group's key begins with group:"),
    ]:
        status, body = traded.get(f"/v1/groups/{quote(key)}")
        problem = json.loads(body)
        assert (status, problem["code"]) == (404, code)
        assert words in problem["detail"]


def test_windows_have_their_groups(traded: Gateway) -> None:
    """With their rows, and without them not."""
    [window] = json.loads(traded.get("/v1/windows/latest")[1])["data"]
    assert [g["trades"] for g in window["groups"]] == [6, 1, 7]
    [window] = json.loads(traded.get("/v1/windows/latest?rows=false")[1])["data"]
    assert "groups" not in window


def test_a_token_shows_the_groups_it_names(
    publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """The others are left out, or forbidden."""
    file = tmp_path / "key"
    file.write_text(SECRET)
    kospi, chips = make_group("market:KOSPI"), make_group("sector:chips")
    publisher.publish(groups=[kospi, chips])
    bearer = f"Bearer {make_token(tick={'keys': [KOSPI]})}"
    with running_gateway(redis_url, token_key_file=file) as gateway:
        gateway.wait_for("reloads")
        _, body, _ = gateway.fetch("/v1/groups", authorization=bearer)
        assert [g["group"] for g in json.loads(body)["data"]] == [KOSPI]
        for key, status in ((KOSPI, 200), ("group:sector:chips", 403)):
            path = f"/v1/groups/{key}"
            assert gateway.fetch(path, authorization=bearer)[0] == status
        assert gateway.get("/v1/groups")[0] == 401
