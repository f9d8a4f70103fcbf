"""A trading status on the market board, from Redis to a page in real Chromium."""

import re

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.gateway.test_statuses import Exchange
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.redis]
CLOCK = re.compile(r"^(halted|VI|auction) \d\d:\d\d:\d\d")


def test_a_status_is_a_mark_with_its_time_and_a_line_of_the_panel(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """Without a window between; also on a page that is loaded then, until it ends."""
    exchange, publisher = Exchange(client), Publisher(client)
    publisher.list_instruments()
    publisher.publish(make_row())
    with running_gateway(redis_url, port=free_port(), heartbeat_ms=500) as gateway:
        gateway.wait_for("reloads")
        page.goto(f"http://127.0.0.1:{gateway.port}/#/{SAMSUNG}")
        row, lines = page.locator(f"#row-{SAMSUNG}"), page.locator(".status-line")
        expect(row.locator(".price")).to_have_text("199,500")
        expect(row.locator(".mark")).to_have_count(0)
        exchange.say("volatility_interruption", venue="KRX", reason="static")
        expect(row.locator(".mark")).to_have_text(CLOCK)
        exchange.say("auction", venue="KRX", expected_price="201000")
        expect(row.locator(".mark")).to_contain_text("auction")
        expect(lines).to_contain_text("KRX · expected price 201,000")
        page.reload()
        expect(row.locator(".mark")).to_have_text(CLOCK)
        exchange.say("trading", venue="KRX")
        expect(row.locator(".mark")).to_have_count(0)
        expect(lines).to_contain_text("Trading since")
