"""Firehose beside calm, in a real Chromium, on a real gateway and a real log."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Browser, Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.readable import unreadable_sizes
from tests.e2e.words import english_left
from tests.gateway.operators.firehose.trade_log import TradeLog
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = [pytest.mark.browser, pytest.mark.redis]

TOKEN = "correct-horse-battery-staple"
NAMES = f"""isin,code,name,market,sector,prev_close
{SAMSUNG},005930,삼성전자,KOSPI,반도체,71000
"""
HIDE = """(isHidden) => {
  const hidden = { get: () => isHidden, configurable: true };
  Object.defineProperty(document, "hidden", hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@dataclass
class Market:
    """A log, and who publishes what is in it."""

    log: TradeLog
    publisher: Publisher
    seq: int = 1

    def trade(self, count: int, isin: str = SAMSUNG) -> None:
        """Append so many trades of an instrument, publish the window they are in."""
        self.log.append(count, isin)
        self.seq += count
        self.publisher.publish(make_row(isin, "71500", self.seq, trades=count))


@pytest.fixture
def market(client: redis.Redis) -> Market:
    """A market of two instruments, one of which has a name."""
    market = Market(TradeLog(client), Publisher(client))
    market.publisher.list_instruments(NAMES)
    market.publisher.publish(make_row(SAMSUNG, "71400"), make_row(HYNIX, "900"))
    return market


def open_page(page: Page, gateway: Gateway, market: Market) -> None:
    """Open the page; wait until both sides have come."""
    page.goto(f"http://127.0.0.1:{gateway.port}/firehose")
    expect(page.locator(".hose .complaint")).to_have_count(0)
    # On a busy machine loading takes longer than a page stays live by itself.
    market.publisher.publish()
    expect(page.locator("#state")).to_have_text("Live")


def account(page: Page) -> tuple[int, int, int]:
    """Return how many trades came, were sent to the page, and were left out."""
    text = page.locator("#account").inner_text()
    came, shown, left_out = re.findall(r"[\d,]+(?= trades| sent| left)", text)
    numbers = (int(number.replace(",", "")) for number in (came, shown, left_out))
    return next(numbers), next(numbers), next(numbers)


def viewers(gateway: Gateway) -> bool:
    """Tell whether anybody looks at the firehose."""
    text = gateway.operators.get("/metrics")[1].decode()
    return "tickthrottle_gateway_firehose_viewers 1.0" in text


def test_both_sides_count_and_show_the_same_instruments(
    page: Page, market: Market, redis_url: str
) -> None:
    """Every trade on the left, a row a window on the right.

    The left side can be paused, and counts go on; a hidden page asks for nothing.
    """
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        open_page(page, gateway.operators, market)
        market.trade(30)
        newest = page.locator(".calm .lines tbody tr").first
        # A second one that comes before the page has read the first is merged with it.
        expect(newest.locator("td").nth(2)).to_have_text("30")
        market.trade(30, HYNIX)
        eventually(lambda: account(page) == (60, 60, 0))
        for side in ("hose", "calm"):
            names = page.locator(f".{side} .tile .name")
            expect(names).to_have_text(["삼성전자", HYNIX])
            expect(page.locator(f".{side} .tile .price").first).to_have_text("71,500")
        expect(page.locator(".hose .lines tr").first).to_contain_text("71,500")
        expect(newest.locator("td").nth(2)).to_have_text("30")
        expect(page.locator("[data-ratio=rows] dd")).to_contain_text("30")
        assert page.locator("nav a").all_inner_texts() == [
            "Operations",
            "Market",
            "Firehose",
        ]
        page.keyboard.press("p")
        lines = page.locator(".hose .lines").inner_text()
        market.trade(20)
        eventually(lambda: account(page) == (80, 80, 0))
        assert page.locator(".hose .lines").inner_text() == lines
        page.get_by_role("button", name="Play").click()
        for width, scheme in ((360, "dark"), (2560, "light")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            # One that began in other colours is in none of both.
            eventually(lambda: page.evaluate("document.getAnimations().length") == 0)
            assert grave_findings(page) == []
            assert page.evaluate("document.body.scrollWidth") <= width
        found = unreadable_sizes(page, "English")
        page.get_by_role("button", name="한국어").click()
        expect(page.get_by_role("button", name="일시정지")).to_be_visible()
        found += unreadable_sizes(page, "Korean")
        assert "\n".join(found) == ""
        assert english_left(page) == []
        page.get_by_role("button", name="English").click()
        assert viewers(gateway)
        page.evaluate(HIDE, True)
        eventually(lambda: not viewers(gateway))
        market.trade(5)
        page.evaluate(HIDE, False)
        traded = 0

        def is_counted() -> bool:
            nonlocal traded
            market.trade(1)
            traded += 1
            return account(page)[0] > 80

        eventually(is_counted)
        assert account(page)[0] <= 80 + traded


def test_who_wants_no_motion_starts_it(
    browser: Browser, market: Market, redis_url: str
) -> None:
    """What is no trade is shown as bytes, and the page says why."""
    page = browser.new_page(reduced_motion="reduce")
    with running_gateway(redis_url) as gateway:
        open_page(page, gateway.operators, market)
        market.log.append_payloads(b"A3|005930|71500|12")
        eventually(lambda: account(page) == (1, 1, 0))
        expect(page.locator(".hose .lines tr")).to_have_count(0)
        expect(page.locator(".hose")).to_contain_text("a job with a decoder")
        page.get_by_role("button", name="Play").click()
        market.log.append_payloads(b"A3|005930|71600|12")
        row = page.locator(".hose .lines tr").first
        expect(row).to_contain_text("A3|005930|71600|12")
    expect(page.locator("#state")).to_have_text("Offline")
    expect(page.locator(".hose .complaint")).to_be_visible()
    page.close()


def test_a_visitor_sees_it_where_it_is_allowed_and_an_operator_shows_a_token(
    page: Page, market: Market, redis_url: str, tmp_path: Path
) -> None:
    """The board links to it then, and not otherwise."""
    with running_gateway(redis_url, firehose_public=True) as gateway:
        page.goto(f"http://127.0.0.1:{gateway.port}/")
        page.get_by_role("link", name="Firehose").click()
        expect(page.locator("#hose-title")).to_be_visible()
        assert page.locator("nav a").all_inner_texts() == ["Market", "Firehose"]
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with running_gateway(redis_url, operators_token_file=token) as gateway:
        page.goto(f"http://127.0.0.1:{gateway.port}/")
        expect(page.locator("#state")).to_be_visible()
        expect(page.get_by_role("link", name="Firehose")).to_have_count(0)
        page.goto(f"http://127.0.0.1:{gateway.operators.port}/firehose")
        page.get_by_label("Operator's token").fill(TOKEN)
        page.get_by_role("button", name="Use it").click()
        expect(page.locator(".token")).to_have_count(0)
        eventually(lambda: viewers_with(gateway, TOKEN))


def viewers_with(gateway: Gateway, token: str) -> bool:
    """Tell whether anybody looks, asked with the operators' token."""
    headers = {"Authorization": f"Bearer {token}"}
    body = gateway.operators.fetch("/metrics", **headers)[1]
    return b"tickthrottle_gateway_firehose_viewers 1.0" in body
