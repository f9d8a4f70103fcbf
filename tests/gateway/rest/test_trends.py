"""REST: trends, for a whole board at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.rest import trends
from tests.conftest import eventually
from tests.doc_pages import blocks_in, section_of
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = pytest.mark.redis

MINUTE_MS = 60_000
BEGIN_MS = 1_773_968_400_000


def publish_minutes(publisher: Publisher) -> int:
    """Publish windows of three whole minutes and a part; return the last whole end."""
    for seq, (at_ms, isin, price) in enumerate(
        [
            (0, NAVER, "1"),
            (2_000, SAMSUNG, "199500.50"),
            (MINUTE_MS, SAMSUNG, "199600.00"),
            (MINUTE_MS + 2_000, HYNIX, "7"),
            (3 * MINUTE_MS, SAMSUNG, "199700"),
            (3 * MINUTE_MS + 2_000, SAMSUNG, "1"),
        ],
        start=1,
    ):
        publisher.publish_at(BEGIN_MS + at_ms, make_row(isin, price, seq))
    return BEGIN_MS + 3 * MINUTE_MS


def ask(gateway: Gateway, **headers: str) -> dict[str, Any]:
    """Return the trends."""
    status, body, _ = gateway.fetch("/v1/trends", **headers)
    assert status == 200, body
    answer: dict[str, Any] = json.loads(body)
    return answer


def test_closes_of_whole_minutes_of_every_instrument(
    publisher: Publisher, gateway: Gateway
) -> None:
    """The text of each price stays; the same answer is not sent again."""
    assert ask(gateway)["data"] == []
    last = publish_minutes(publisher)
    eventually(lambda: ask(gateway)["end"] == last)
    _, body, headers = gateway.fetch("/v1/trends")
    answer = json.loads(body)
    assert answer["data"] == [
        {"isin": HYNIX, "closes": [7, None]},
        {"isin": SAMSUNG, "closes": [199600, None, 199700]},
    ]
    assert b"[199600.00,null,199700]" in body
    [shown] = blocks_in(section_of("docs/bars.md", "Trends"), "json")
    assert json.loads(shown).keys() == answer.keys()
    again, _, _ = gateway.fetch("/v1/trends", If_None_Match=headers["etag"])
    assert again == 304
    # A window of the minute that goes on changes nothing.
    publisher.publish_at(last + 4_000, make_row(SAMSUNG, "2", 9))
    gateway.wait_until(publisher.offset)
    again, _, _ = gateway.fetch("/v1/trends", If_None_Match=headers["etag"])
    assert again == 304


def test_an_answer_has_a_bound_and_says_what_is_left_out(
    publisher: Publisher, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No instrument goes missing without being counted."""
    monkeypatch.setattr(trends, "MAX_BYTES", 50)
    last = publish_minutes(publisher)
    eventually(lambda: ask(gateway)["end"] == last)
    answer = ask(gateway)
    assert (answer["count"], answer["left_out"]) == (1, 1)


def test_a_token_has_the_trends_of_its_instruments(
    publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """With an interval that a minute holds some of, too; with another one none."""
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    last = publish_minutes(publisher)
    with running_gateway(redis_url, token_key_file=key) as gateway:

        def shown(**claims: Any) -> dict[str, str]:
            return {"Authorization": f"Bearer {make_token(600, tick=claims)}"}

        one = shown(keys=[HYNIX])
        eventually(lambda: ask(gateway, **one)["end"] == last)
        assert [t["isin"] for t in ask(gateway, **one)["data"]] == [HYNIX]
        eventually(lambda: ask(gateway, **shown(min_interval_ms=5_000))["count"] == 2)
        status, _, _ = gateway.fetch("/v1/trends", **shown(min_interval_ms=7_000))
        assert status == 403
