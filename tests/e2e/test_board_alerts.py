"""Alerts on the market board, in a real Chromium: set, told, kept, asleep or awake."""

import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import NAMES, Board, running_board
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG

pytestmark = [pytest.mark.browser, pytest.mark.redis]

# What the browser was asked for: notifications of the system, tones.
RECORDED = """
  window.asked = [];
  const { createOscillator } = AudioContext.prototype;
  AudioContext.prototype.createOscillator = function () {
    asked.push("tone");
    return createOscillator.call(this);
  };
  window.Notification = class extends Notification {
    constructor(title, options) {
      super(title, options);
      asked.push(`${title}: ${options.body}`);
    }
  };
"""


def open_alerts(board: Board, isin: str) -> None:
    """Open an instrument and, in its panel, its alerts."""
    board.row(isin).locator(".price").click()
    board.page.locator(".alerts summary").click()


def set_alert(page: Page, value: str, way: str = "up", often: str = "once") -> None:
    """Set an alert on the price of the instrument that is open."""
    form = page.locator(".alerts .alert-form").first
    form.get_by_label("Which way").select_option(way)
    form.get_by_label("Price", exact=True).fill(value)
    form.get_by_label("How often").select_option(often)
    form.get_by_role("button", name="Set alert").click()


def told(page: Page, *texts: str) -> None:
    """Wait until these notices are shown, the newest first, and the title says so."""
    patterns = [re.compile(text + r" \d\d:\d\d:\d\d local$") for text in texts]
    expect(page.locator("#told .text")).to_have_text(patterns)
    mark = rf"^\({len(texts)}\) " if texts else r"^[^(]"
    expect(page).to_have_title(re.compile(mark))


def test_a_price_that_is_reached_is_told_once_or_each_time(board: Board) -> None:
    """By keyboard; the list sets it again, changes it and deletes it."""
    page = board.page
    open_alerts(board, SAMSUNG)
    set_alert(page, "nothing")
    status = page.locator(".alerts .alert-form").get_by_role("status")
    expect(status).to_have_text("The value is a number above zero.")
    page.get_by_label("Price", exact=True).fill("200,000")
    page.keyboard.press("Enter")
    expect(status).to_have_text("Set.")
    set_alert(page, "199,400.5", "either", "each")
    alerts = page.locator(".alerts .what")
    expect(alerts).to_have_text(
        [
            re.compile(r"rises to 200,000\s*once"),
            re.compile(r"reaches 199,400.5\s*each time"),
        ]
    )
    assert grave_findings(page) == []
    board.publish(**{SAMSUNG: "199999"})
    reached = "삼성전자 has reached 199,400.5: "
    told(page, reached + "199,999")
    board.publish(**{SAMSUNG: "200000"})
    risen = "삼성전자 has risen to 200,000: 200,000"
    told(page, risen, reached + "199,999")
    board.publish(**{SAMSUNG: "199000"})
    told(page, reached + "199,000", risen, reached + "199,999")
    assert grave_findings(page) == []
    board.publish(**{SAMSUNG: "200000"})
    expect(page.locator("#told .notice")).to_have_count(3)
    page.get_by_role("button", name="Dismiss all, 1 more").click()
    told(page)
    expect(alerts.first).to_contain_text("told at")
    page.keyboard.press("Escape")
    page.locator("#alerts").click()
    dialog = page.get_by_role("dialog", name="Alerts")
    dialog.get_by_role("button", name="Again: 삼성전자: rises to 200,000").click()
    dialog.get_by_role("button", name="Edit: 삼성전자: rises to 200,000").click()
    dialog.get_by_label("Price", exact=True).fill("200500")
    dialog.get_by_role("button", name="Change it").click()
    dialog.get_by_role("button", name="Delete: 삼성전자: reaches").click()
    expect(dialog.locator(".what")).to_have_text(
        re.compile(r"삼성전자 rises to 200,500\s*once")
    )
    assert grave_findings(page) == []
    page.keyboard.press("Escape")
    board.publish(**{SAMSUNG: "200500"})
    told(page, "삼성전자 has risen to 200,500: 200,500")
    page.locator("#told .text").click()
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    told(page)


# Whether a cell of prices has lit up since.
LIT = """() => {
  window.lit = 0;
  new MutationObserver((changes) => (lit += changes.length)).observe(
    document.getElementById("rows"), { attributeFilter: ["data-lit"], subtree: true });
}"""


def test_a_price_that_was_only_touched_is_told_and_widens_the_range(
    board: Board,
) -> None:
    """Within a window, or by a late trade, which is no change of the price."""
    page, row = board.page, board.row(SAMSUNG)
    open_alerts(board, SAMSUNG)
    set_alert(page, "205000", "up", "each")
    page.keyboard.press("Escape")
    board.publish_touched(SAMSUNG, "199100", "205000", "150000")
    risen = "삼성전자 has risen to 205,000: "
    told(page, risen + "205,000")
    board.is_right()
    expect(row.locator(".range")).to_contain_text("from 150,000 to 205,000")
    expect(row.locator("path")).to_have_attribute("d", re.compile(r"L960,\d+V\d+V\d+$"))
    expect(page.locator("[data-lit]")).to_have_count(0)
    trades = int(row.locator(".trades").inner_text().split()[-1])
    page.evaluate(LIT)
    board.publish_late(SAMSUNG, "210000")
    told(page, risen + "210,000", risen + "205,000")
    expect(row.locator(".trades")).to_have_text(re.compile(rf"\+1\s+{trades + 1}$"))
    expect(row.locator(".range")).to_contain_text("from 150,000 to 210,000")
    board.is_right()
    assert page.evaluate("window.lit") == 0
    prices = itertools.cycle(["199000", "199200"])

    def is_lit() -> bool:
        # A page that was silent for long comes back without a light: once more.
        board.publish_touched(SAMSUNG, next(prices), "204999")
        board.is_right()
        return int(page.evaluate("window.lit")) > 0

    eventually(is_lit)
    expect(page.locator("#told .notice")).to_have_count(2)


def test_a_page_that_slept_or_was_gone_misses_nothing(board: Board) -> None:
    """Frozen by the browser, hidden, closed: the next message decides."""
    page = board.page
    open_alerts(board, SAMSUNG)
    set_alert(page, "200000", "up", "each")
    debugger = page.context.new_cdp_session(page)
    debugger.send("Page.setWebLifecycleState", {"state": "frozen"})
    board.publish(**{SAMSUNG: "201000"})
    board.publish(**{SAMSUNG: "202000"})
    debugger.send("Page.setWebLifecycleState", {"state": "active"})
    eventually(lambda: page.title().startswith("(1) "))
    board.publish(**{SAMSUNG: "199000"})
    board.is_right()
    # A hidden page gets messages, and no frame to draw them in.
    page.evaluate("window.requestAnimationFrame = () => 0")
    board.publish(**{SAMSUNG: "203000"})
    eventually(lambda: page.title().startswith("(2) "))
    page.evaluate("localStorage.setItem('tickthrottle.other', '{')")
    page.goto("about:blank")
    board.publish(**{SAMSUNG: "150000"})
    board.publish(**{HYNIX: "1"})
    page.goto(board.url)
    board.publisher.publish()
    board.is_live()
    board.is_right()
    told(page)
    page.goto("about:blank")
    board.publish(**{SAMSUNG: "200000.01"})
    page.goto(board.url)
    told(page, "삼성전자 has risen to 200,000: 200,000.01")


def test_a_change_is_told_to_the_last_digit(board: Board) -> None:
    """Against the previous close; where none is known there is no such alert."""
    page = board.page
    open_alerts(board, HYNIX)
    form = page.locator(".alerts .alert-form").first
    form.get_by_label("What of it").select_option("change")
    form.get_by_label("Which way").select_option("down")
    form.get_by_label("Per cent").fill("0.7")
    form.get_by_role("button", name="Set alert").click()
    expect(page.locator(".alerts .what")).to_contain_text("falls 0.7 % or more")
    bound = Decimal("900000.50") * Decimal("0.993")
    board.publish(**{HYNIX: str(bound + Decimal("0.0001"))})
    board.is_right()
    told(page)
    board.publish(**{HYNIX: str(bound)})
    told(page, "SK하이닉스 is 0.7 % or more below its previous close: 893,700.4965.*")
    page.keyboard.press("Escape")
    isin = "KR7035420009"
    open_alerts(board, isin)
    option = page.locator(".alerts option[value=change]")
    expect(option).to_be_disabled()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser of several tabs, which tells what it was asked for."""
    context = browser.new_context()
    context.add_init_script(RECORDED)
    yield context
    context.close()


def test_sound_and_notifications_come_when_they_are_asked_for(
    context: BrowserContext, client: redis.Redis, tmp_path: Path
) -> None:
    """By a press; a refusal is told. Each of two tabs shows one notice."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(NAMES, "utf-8")
    page = context.new_page()
    with running_board(page, client, instruments, {SAMSUNG: "199400"}) as board:
        are_signals_asked_for(board, context)


def are_signals_asked_for(board: Board, context: BrowserContext) -> None:
    """Ask for both, in a tab that shows an instrument's alert."""
    page = board.page
    open_alerts(board, SAMSUNG)
    set_alert(page, "200000", "either", "each")
    page.keyboard.press("Escape")
    page.locator("#alerts").click()
    dialog = page.get_by_role("dialog", name="Alerts")
    notifications = dialog.get_by_label("Notifications")
    notifications.click()
    expect(dialog.get_by_role("status")).to_contain_text("does not allow")
    expect(notifications).not_to_be_checked()
    context.grant_permissions(["notifications"])
    notifications.click()
    expect(dialog.get_by_role("status")).to_be_empty()
    expect(notifications).to_be_checked()
    assert asked(page) == []
    dialog.get_by_label("Sound").click()
    assert asked(page) == ["tone"]
    page.keyboard.press("Escape")
    board.publish(**{SAMSUNG: "200000"})
    text = "tickthrottle: 삼성전자 has reached 200,000: 200,000"
    eventually(lambda: asked(page) == ["tone", "tone", text])
    # Another tab of the browser shows it as well.
    other = context.new_page()
    other.goto(board.url)
    expect(other.locator("#instruments")).to_have_text("1")
    board.publish(**{SAMSUNG: "199999"})
    for tab in (page, other):
        expect(tab.locator(f"#row-{SAMSUNG} .price")).to_have_text("199,999")
    board.publish(**{SAMSUNG: "200001"})
    latest = "has reached 200,000: 200,001"
    for tab in (page, other):
        expect(tab.locator("#told .text").filter(has_text=latest)).to_have_count(1)
    # Two that hear of a price in the same instant may both ask; the system shows one.
    eventually(
        lambda: any(latest in text for tab in (page, other) for text in asked(tab))
    )


def asked(page: Page) -> Any:
    """Return what the page asked the browser for."""
    return page.evaluate("asked")


def test_a_burst_is_told_when_it_has_ended(board: Board, client: redis.Redis) -> None:
    """Polled, since no stream has bursts; those that were there before are no news."""
    page = board.page
    bars = BarPublisher(client)
    bars.publish_burst(make_bar(SAMSUNG, 1))
    open_alerts(board, SAMSUNG)
    form = page.locator(".alerts .alert-form").first
    form.get_by_label("What of it").select_option("burst")
    form.get_by_role("button", name="Set alert").click()
    with page.expect_response("**/v1/bursts*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    told(page)
    bars.publish_burst(make_bar(SAMSUNG, 9))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    told(page, "삼성전자: a burst of trading")
