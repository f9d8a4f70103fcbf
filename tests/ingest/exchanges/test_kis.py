"""Korean stocks: an approval first, then text frames without numbers."""

import json
import socket
import time

import pytest
import redis
from structlog.testing import capture_logs

from ingest.adapters.adapter import Limit
from ingest.exchanges.kis import Kis
from tests.conftest import PATIENCE, eventually
from tests.ingest.adapters.exchange import Session, answering, exchanging
from tests.ingest.adapters.feeding import feeding, wait_for
from tests.ingest.adapters.frames import Deal, kis, kis_fields

pytestmark = pytest.mark.redis

SECRETS = {"appkey": "APP", "secretkey": "SECRET"}
APPROVAL = {"/oauth2/Approval": (200, {"approval_key": "approved"})}
SUBSCRIBED = (
    '{"header":{"tr_id":"H0STCNT0","tr_key":"005930","encrypt":"N"},"body":{"rt_cd":'
    '"0","msg_cd":"OPSP0000","msg1":"SUBSCRIBE SUCCESS","output":{"iv":"I","key":"K"}}}'
)


class Quick(Kis):
    """Without its limit of connections."""

    connects = Limit(100, 1.0)


def row(
    volume: int, size: int, price: str = "71900", hour: str = "094751"
) -> list[str]:
    return kis_fields(Deal("005930", 0, price, str(size)), volume, hour=hour)


def test_what_comes_again_is_dropped_by_its_volume_and_a_gap_is_told(
    redis_url: str, client: redis.Redis
) -> None:
    """Three trades of one second keep their order; the fourth comes twice."""

    def first(session: Session) -> None:
        assert '"approval_key": "approved"' in session.hear()
        session.send(SUBSCRIBED, kis(row(100, 100, "71950"), row(102, 2), row(177, 75)))

    def second(session: Session) -> None:
        assert "H0STCNT0" in session.hear()
        assert "H0STMKO0" in session.hear()
        session.send(SUBSCRIBED, '{"header":{"tr_id":"PINGPONG","datetime":"x"}}')
        assert "PINGPONG" in session.hear()
        session.send(kis(row(177, 75), row(200, 10, hour="094800")))
        session.wait()

    with (
        capture_logs() as logs,
        exchanging(first, second) as exchange,
        answering(APPROVAL) as (rest_url, posted),
        feeding(
            redis_url,
            Quick,
            SECRETS,
            url=exchange.url,
            rest_url=rest_url,
            symbols="005930",
        ),
    ):
        found = wait_for(client, 4)
        eventually(lambda: [e for e in logs if "missing" in e["event"]])
    assert [trade["seq"] for trade in found] == [100, 102, 177, 200]
    assert {trade["isin"] for trade in found} == {"KR7005930003"}
    assert [trade["time"] for trade in found[:3]] == [1753836471000000] * 3
    assert exchange.paths == ["/tryitout/H0STCNT0"] * 2
    # An approval for each connection.
    assert [p["secretkey"] for p in posted] == ["SECRET"] * 2
    gap = next(e for e in logs if "missing" in e["event"])
    assert (gap["first"], gap["last"]) == (177, 190)


def test_two_venues_are_followed_side_by_side(
    redis_url: str, client: redis.Redis
) -> None:
    """Each numbers by its own volume; of one second the last to come is the newest."""

    def play(session: Session) -> None:
        asked = [json.loads(session.hear())["body"]["input"] for _ in range(3)]
        assert [tuple(one.values()) for one in asked] == [
            *(("H0STCNT0", "005930"), ("H0STCNT0", "000660")),
            ("H0NXCNT0", "005930"),
        ]
        session.send(
            kis(row(100, 100, "71950")),
            kis(row(7, 7, "72000"), channel="H0NXCNT0"),
            kis(row(102, 2)),
            kis(row(7, 7, "72000"), channel="H0NXCNT0"),
            kis(row(9, 2, hour="094752"), channel="H0UNCNT0"),
        )
        session.wait()

    with (
        capture_logs() as logs,
        exchanging(play) as exchange,
        answering(APPROVAL) as (rest_url, _),
        feeding(
            redis_url,
            Quick,
            SECRETS,
            url=exchange.url,
            rest_url=rest_url,
            symbols="005930,000660,005930@NXT,A005930@KRX",
        ),
    ):
        found = wait_for(client, 3)
        eventually(lambda: [e for e in logs if "H0UNCNT0" in e["event"]])
    shown = [(one["venue"], one["seq"], one["symbol"]) for one in found]
    assert shown == [
        ("KRX", 100, "005930"),
        ("NXT", 101, "005930"),
        ("KRX", 102, "005930"),
    ]
    assert {trade["isin"] for trade in found} == {"KR7005930003"}


def test_a_feed_that_waits_for_its_key_ends_when_told(redis_url: str) -> None:
    """Within two seconds, though the server of keys says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        rest_url = f"http://127.0.0.1:{server.getsockname()[1]}"
        options = {"rest_url": rest_url, "symbols": "005930"}
        with feeding(redis_url, Quick, SECRETS, **options) as running:
            connection, _ = server.accept()
            began_s = time.monotonic()
            running.stop.set()
            eventually(running.ended)
            assert time.monotonic() - began_s < 2 * PATIENCE
            connection.close()
    assert running.report.stopped


def test_a_wrong_key_is_told_without_the_key(redis_url: str) -> None:
    """The broker's own words, and what was posted is not among them."""
    words = {"error_code": "EGW00103", "error_description": "invalid SECRET of APP"}
    answers = {"/oauth2/Approval": (403, words)}
    with (
        answering(answers) as (rest_url, _),
        feeding(
            redis_url, Quick, SECRETS, rest_url=rest_url, symbols="005930"
        ) as running,
    ):
        eventually(running.ended)
    told = str(running.errors[0])
    assert told.startswith("feed kis: 127.0.0.1 refuses with HTTP 403: ")
    assert "EGW00103" in told
    assert "SECRET" not in told
    assert "APP" not in told
