"""A gateway of one market, through that market's own channel."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.archive.rig import archiving, settings_of, wait_until_stored
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    NAVER,
    SAMSUNG,
    make_group,
    make_row,
)
from tests.gateway.servers import Gateway, running_gateway
from tests.gateway.test_groups import groups_of, isins_of
from tests.redis_users import documented_users, url_of

pytestmark = pytest.mark.redis

KOSPI = "group:market:KOSPI"
GROUPS = [make_group(f"market:{name}", 3) for name in ("KOSPI", "KOSDAQ")]


@pytest.fixture
def kospi(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> Iterator[Gateway]:
    """A gateway of KOSPI, with the documented rights.

    Two instruments have traded, one of another market.
    """
    publisher.list_instruments()
    publisher.markets = ["KOSPI", "KOSDAQ"]
    publisher.publish(make_row(SAMSUNG), make_row(NAVER), groups=GROUPS)
    with documented_users(client):
        url = url_of("tt-gateway", redis_url)
        with running_gateway(url, served_market="KOSPI") as gateway:
            eventually(lambda: quoted(gateway) == [SAMSUNG])
            yield gateway


def quoted(gateway: Gateway) -> list[str]:
    """Return the instruments that have a quote."""
    return isins_of(json.loads(gateway.get("/v1/quotes")[1]))


def problem_of(gateway: Gateway, path: str) -> tuple[int, str]:
    """Return status and code of a refusal."""
    status, body = gateway.get(path)
    return status, json.loads(body)["code"]


def test_it_listens_to_its_market_alone(
    kospi: Gateway, publisher: Publisher, client: redis.Redis
) -> None:
    """``*`` is that market, whose group comes along; the welcome says so."""
    channels = client.pubsub_channels("tt:*")
    assert channels == [b"tt:updates:KOSPI"]
    with kospi.stream("?keys=*,group:*") as stream:
        assert stream.welcome["market"] == "KOSPI"
        stream.take("ack")
        snapshot = stream.take("snapshot")
        assert (isins_of(snapshot), groups_of(snapshot)) == ([SAMSUNG], {KOSPI: 3})
        rows = [make_row(isin, seq=2) for isin in (HYNIX, NAVER)]
        publisher.publish(*rows, groups=GROUPS)
        update = stream.take("update")
        assert (isins_of(update), groups_of(update)) == ([HYNIX], {KOSPI: 3})
        publisher.publish(make_row(NAVER, seq=3))
        publisher.publish(make_row(HYNIX, seq=3))
        assert stream.take("update")["offset"] == 4
    assert kospi.count("gaps_healed") == 0
    assert kospi.count("reloads") <= 2


def test_other_markets_keys_are_refused(kospi: Gateway) -> None:
    """On the stream and over REST, with a code that says where the fault lies."""
    others = [NAVER, "035420", "market:KOSDAQ", "group:market:KOSDAQ"]
    with kospi.stream() as stream:
        stream.say(op="subscribe", keys=[*others, "market:KOSPI"])
        ack = stream.take("ack")
    assert ack["accepted"] == ["market:KOSPI"]
    told = [(r["key"], r["code"], r["message"]) for r in ack["rejected"]]
    assert told[0] == (NAVER, "not_served", "the market KOSPI alone is served here")
    assert [(key, code) for key, code, _ in told[1:]] == [
        (key, "not_served") for key in others[1:]
    ]
    for path in (
        f"/v1/quotes/{NAVER}",
        "/v1/instruments/035420",
        f"/v1/instruments/{NAVER}/windows",
        "/v1/groups/group:market:KOSDAQ",
    ):
        assert problem_of(kospi, path) == (404, "not_served")
    assert problem_of(kospi, "/v1/quotes?market=KOSDAQ") == (400, "not_served")
    assert json.loads(kospi.get("/v1/instruments")[1])["count"] == 2


def test_what_it_reads_back_is_of_its_market(
    kospi: Gateway, publisher: Publisher
) -> None:
    """A hole that is filled from the window log, windows over REST."""
    with kospi.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        rows = [make_row(isin, seq=2) for isin in (SAMSUNG, NAVER)]
        publisher.publish_lost(*rows, groups=GROUPS)
        publisher.publish(make_row(HYNIX))
        assert set(isins_of(stream.take("update"))) == {SAMSUNG, HYNIX}
    assert kospi.count("gaps_healed") == 1
    windows = json.loads(kospi.get("/v1/windows")[1])["data"]
    told: list[Any] = [(isins_of(w), list(groups_of(w))) for w in windows]
    assert told == [([HYNIX], []), ([SAMSUNG], [KOSPI]), ([SAMSUNG], [KOSPI])]


def test_an_instrument_that_moves_in_comes_with_its_newest_trade(
    kospi: Gateway, publisher: Publisher
) -> None:
    """And one that leaves is not shown any more, nor does it come."""
    moved = INSTRUMENT_LIST.replace("NAVER,KOSDAQ", "NAVER,KOSPI").replace(
        "Electronics,KOSPI", "Electronics,KOSDAQ"
    )
    with kospi.stream("?keys=*") as stream:
        stream.take("ack")
        stream.take("snapshot")
        publisher.list_instruments(moved)
        eventually(lambda: NAVER in kospi.get("/v1/instruments")[1].decode())
        publisher.publish(make_row(SAMSUNG, seq=2), make_row(HYNIX))
        assert isins_of(stream.take("update")) == [HYNIX, NAVER]
    assert quoted(kospi) == [HYNIX, NAVER]


def test_the_gateway_of_every_market_names_none(gateway: Gateway) -> None:
    """Clients tell them apart."""
    with gateway.stream() as stream:
        assert "market" not in stream.welcome


def test_the_archive_of_all_markets_shows_its_part(
    publisher: Publisher, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """What Redis has forgotten is told as what it remembers."""
    publisher.list_instruments()
    publisher.publish(make_row(SAMSUNG), make_row(NAVER))
    with archiving(settings_of(redis_url, tmp_path)):
        wait_until_stored(client, 1)
    publisher.publish(make_row(SAMSUNG, seq=2))
    client.xtrim(publisher.keys.windows, maxlen=1, approximate=False)
    of_market = {"served_market": "KOSPI", "archive_dir": tmp_path}
    with running_gateway(redis_url, **of_market) as gateway:
        eventually(lambda: quoted(gateway) == [SAMSUNG])
        windows = json.loads(gateway.get("/v1/windows")[1])["data"]
        assert [isins_of(window) for window in windows] == [[SAMSUNG], [SAMSUNG]]
        path = f"/v1/quotes/{NAVER}/history"
        assert problem_of(gateway, path) == (404, "not_served")
