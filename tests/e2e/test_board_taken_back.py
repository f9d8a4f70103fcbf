"""A cancelled trade on the market board, from the log to a page in real Chromium."""

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


@pytest.mark.parametrize("table", [[], [InstrumentEntry(SAMSUNG, name="삼성전자")]])
def test_a_cancelled_high_leaves_price_and_range(
    page: Page,
    client: redis.Redis,
    redis_url: str,
    table: list[InstrumentEntry],
) -> None:
    """At once, and marked until the next trade; for whoever loads the page then, too,
    though nothing tells that page of what was there before. With names and without.
    """
    with (
        ThrottleDriver(redis_url=redis_url, instruments=table) as driver,
        running_gateway(redis_url, port=free_port(), heartbeat_ms=500) as gateway,
    ):
        driver.trade(SAMSUNG, "71900", at_ms=100, seq=1, size="10")
        driver.turn_clock(W)
        page.goto(f"http://127.0.0.1:{gateway.port}/")
        row = page.locator(f"#row-{SAMSUNG}")
        price, spread = row.locator(".price"), row.locator(".range")
        expect(price).to_have_text("71,900")
        driver.trade(SAMSUNG, "71800", at_ms=W + 100, seq=2)
        driver.trade(SAMSUNG, "99900", at_ms=W + 200, seq=3, size="1000")
        driver.turn_clock(2 * W)
        expect(price).to_have_text("99,900")
        expect(spread).to_contain_text("from 71,800 to 99,900")
        expect(row.locator(".corrected")).to_have_count(0)
        driver.cancel(SAMSUNG, 3, at_ms=2 * W + 100)
        driver.turn_clock(3 * W)
        for is_loaded_anew in (False, True):
            if is_loaded_anew:
                page.reload()
            expect(price).to_have_text("71,800")
            expect(spread).to_contain_text("from 71,800 to 71,900")
            mark = row.locator(".corrected")
            expect(mark).to_have_text([] if is_loaded_anew else ["corrected"])
        driver.trade(SAMSUNG, "71850", at_ms=3 * W + 100, seq=4)
        driver.turn_clock(4 * W)
        expect(price).to_have_text("71,850")
        expect(row.locator(".corrected")).to_have_count(0)
