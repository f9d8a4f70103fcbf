"""Time and sales of an open instrument, from the log to a real Chromium."""

import pytest
import redis
from playwright.sync_api import Page, expect

from ingest.tradelog.contract import partition_of
from tests.conftest import eventually
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from throttle.testing.driver import ThrottleDriver

pytestmark = [pytest.mark.browser, pytest.mark.redis]
W = 2_000


def test_a_tab_shows_every_trade_while_it_is_chosen(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """The newest first, and what is taken back; nothing is read before, nor after."""
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url, port=free_port(), heartbeat_ms=500) as gateway,
    ):
        driver.trade(SAMSUNG, "71900", at_ms=100, seq=1)
        driver.turn_clock(W)
        page.goto(f"http://127.0.0.1:{gateway.port}/#/{SAMSUNG}")
        page.get_by_role("tab", name="Trades").click()
        expect(page.get_by_text("No trade has come since")).to_be_visible()
        at_ms = W
        while not gateway.count("trade_entries_read"):
            at_ms += 1
            driver.payload(b"{}", at_ms=at_ms, partition=partition_of(SAMSUNG, 4))
            page.wait_for_timeout(50)
        for n in range(3):
            driver.trade(SAMSUNG, f"7200{n}.50", at_ms=at_ms, seq=n + 2, venue="NXT")
            driver.trade(HYNIX, "1", at_ms=at_ms)
        driver.cancel(SAMSUNG, 3, at_ms=at_ms)
        lines = page.locator(".detail table.trades tbody tr")
        expect(lines).to_have_count(4)
        expect(lines.nth(0)).to_contain_text("trade 3 was taken back")
        prices = page.locator(".detail table.trades tbody td:nth-child(2):not(.soft)")
        expect(prices).to_have_text(["72,002.50", "72,001.50", "72,000.50"])
        expect(lines.nth(1)).to_contain_text("NXT")
        page.get_by_role("tab", name="Chart").click()

        def is_quiet() -> bool:
            before = gateway.count("trade_entries_read")
            driver.trade(SAMSUNG, "1", at_ms=at_ms)
            page.wait_for_timeout(300)
            return gateway.count("trade_entries_read") == before

        eventually(is_quiet)
