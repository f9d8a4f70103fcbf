"""Venues and sessions of an open instrument, from the log to a real Chromium."""

import pytest
import redis
from playwright.sync_api import Page, expect

from ingest.instrument_table.instrument_entry import InstrumentEntry
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from throttle.testing.driver import ThrottleDriver

pytestmark = [pytest.mark.browser, pytest.mark.redis]
W = 2_000


def test_a_panel_has_the_venues_and_the_regular_close(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """As they change, and when there is a new one; the table has instruments alone."""
    entry = InstrumentEntry(SAMSUNG, name="삼성전자", prev_close="71500")
    with (
        ThrottleDriver(
            redis_url=redis_url, instruments=[entry], series="KRX,NXT,regular"
        ) as driver,
        running_gateway(redis_url, port=free_port(), heartbeat_ms=500) as gateway,
    ):
        regular = {"venue": "KRX", "session": "regular"}
        driver.trade(SAMSUNG, "72000", at_ms=100, seq=1, size="500", **regular)
        driver.turn_clock(W)
        page.goto(f"http://127.0.0.1:{gateway.port}/#/{SAMSUNG}")
        lines = page.locator(".detail table.series tbody tr")
        expect(lines).to_have_count(2)
        expect(lines.nth(0)).to_contain_text("KRX")
        expect(lines.nth(1)).to_contain_text("regular session")
        expect(page.locator(".detail .session")).to_have_count(0)
        after = {"venue": "NXT", "session": "after"}
        driver.trade(SAMSUNG, "72600", at_ms=W + 100, seq=2, size="2", **after)
        driver.turn_clock(2 * W)
        expect(page.locator(".detail .quote .price")).to_have_text("72,600")
        expect(page.locator(".detail .session")).to_have_text("after-market")
        expect(lines).to_have_count(3)
        expect(lines.nth(1)).to_contain_text("NXT")
        expect(lines.nth(1)).to_contain_text("72,600")
        expect(lines.nth(2)).to_contain_text("72,000")
        expect(lines.nth(2)).to_contain_text("+0.70%")
        expect(page.locator('[id^="row-"]')).to_have_count(1)
