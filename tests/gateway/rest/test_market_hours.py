"""Which markets are open, over REST."""

import json
import re
import time

import pytest

from tests.doc_pages import text_of
from tests.gateway.servers import running_gateway

pytestmark = pytest.mark.redis

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def test_each_market_says_whether_it_is_open(redis_url: str) -> None:
    """Until when, and when it opens; an answer that has not changed costs nothing."""
    day = (time.time_ns() // 86_400_000_000_000 + 3) * 86_400_000
    hours = f"24/7; UTC {DAYS[time.gmtime(day / 1000).tm_wday]} 00:00-00:01"
    with running_gateway(redis_url, market_hours=hours) as gateway:
        status, body, headers = gateway.fetch("/v1/market-hours")
        always, closed = json.loads(body)["data"]
        assert (status, always["market"], always["open"]) == (200, "24/7", True)
        assert always["closes"] is None
        assert closed == {
            "market": "UTC",
            "zone": "UTC",
            "open": False,
            "closes": None,
            "opens": day,
        }
        shown = re.search(r'^\{"count":.*\}$', text_of("docs/market.md"), re.MULTILINE)
        assert shown
        [of_page] = json.loads(shown[0])["data"]
        assert of_page.keys() == closed.keys()
        again = gateway.fetch("/v1/market-hours", If_None_Match=headers["etag"])
        assert again[0] == 304


def test_without_hours_there_is_no_market(redis_url: str) -> None:
    """Nobody is told that a market is closed whose hours nobody knows."""
    with running_gateway(redis_url) as gateway:
        assert json.loads(gateway.get("/v1/market-hours")[1]) == {
            "count": 0,
            "data": [],
        }
