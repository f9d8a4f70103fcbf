"""The market board, in a real Chromium: it shows what was published, and when not."""

import random
import re
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Locator, Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import Board
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    FIRST_WINDOW,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_isins,
    make_row,
)
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from throttle.contract.snapshot import Row

pytestmark = [pytest.mark.browser, pytest.mark.redis]

EVERY_INSTRUMENT = 2_879


def test_it_shows_what_was_published(board: Board) -> None:
    """Every price with its digits, changes against the close, trades, names."""
    board.is_right()
    board.publish(**{SAMSUNG: "202000", NAVER: "0.40"})
    board.is_right()
    samsung, naver = board.row(SAMSUNG), board.row(NAVER)
    expect(samsung).to_contain_text("삼성전자")
    expect(samsung.locator(".change")).to_have_text(
        re.compile(r"up\s*▲ 2,000\s*\+1.00%$")
    )
    expect(naver.locator(".change")).to_have_text(re.compile(r"▲ 0.10\s*\+33.33%\*$"))
    expect(samsung.locator(".trades")).to_contain_text("+37")
    expect(board.page.locator("#instruments")).to_have_text("3")
    expect(board.page.locator("#trades")).to_have_text("74")


def test_names_and_closes_change_while_the_page_is_open(board: Board) -> None:
    """A day begins, an instrument is listed: nobody has to load the page again."""
    change = board.row(SAMSUNG).locator(".change")
    before = change.text_content()
    later = "isin,code,name,prev_close\n" + (
        f"{SAMSUNG},005930,삼성전자 우선주,100000\n{NAVER},035420,네이버,0.20\n"
    )
    board.publisher.list_instruments(later)
    expect(board.row(SAMSUNG)).to_contain_text("우선주", timeout=30_000)
    assert change.text_content() != before
    expect(board.row(NAVER)).to_contain_text("네이버")
    board.page.fill("#search", "네이버")
    assert board.isins() == [NAVER]


def test_the_search_leads_into_the_table_by_keys(board: Board) -> None:
    """Enter opens the first stock that is found, the arrow goes to the rows."""
    page = board.page
    page.keyboard.press("/")
    page.keyboard.press("Enter")
    expect(page.locator(".detail")).to_have_count(0)
    page.keyboard.type("하이닉스")
    expect(page.locator("#shown")).to_have_text("1 found")
    page.keyboard.press("ArrowDown")
    expect(page.locator("table[role=grid]")).to_be_focused()
    expect(board.row(HYNIX)).to_have_class(re.compile("active"))
    page.keyboard.press("ArrowUp")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".detail")).to_contain_text("SK하이닉스")
    expect(page).to_have_url(re.compile(HYNIX))


def test_search_finds_whatever_an_instrument_is_called(board: Board) -> None:
    """And says so when nothing is found."""
    for wanted, found in [
        ("하이닉스", [HYNIX]),
        ("ㅅㅅㅈㅈ", [SAMSUNG]),
        ("005930", [SAMSUNG]),
        (NAVER.lower(), [NAVER]),
        ("반도체 kospi", [HYNIX, SAMSUNG]),
        ("ㅂㄷㅊ 전자", [SAMSUNG]),
        ("", [HYNIX, SAMSUNG, NAVER]),
        ("nothing", []),
    ]:
        board.page.fill("#search", wanted)
        assert board.isins() == found
    expect(board.page.locator("#empty")).to_have_text("Nothing matches.")


def test_a_watch_list_is_kept(board: Board) -> None:
    """A star outlives the page; the filter too."""
    board.row(NAVER).get_by_role("button").click()
    board.page.locator("#watched").click()
    assert board.isins() == [NAVER]
    board.page.reload()
    board.is_in_state("Live")
    eventually(lambda: board.isins() == [NAVER])
    board.row(NAVER).get_by_role("button").click()
    expect(board.page.locator("#empty")).to_contain_text("No stock is starred")


def test_headers_sort(board: Board) -> None:
    """By any column, both ways; screen readers are told."""
    header = board.page.get_by_role("columnheader", name="Price")
    header.get_by_role("button").click()
    assert board.isins() == [HYNIX, SAMSUNG, NAVER]
    expect(header).to_have_attribute("aria-sort", "descending")
    header.get_by_role("button").click()
    assert board.isins() == [NAVER, SAMSUNG, HYNIX]
    expect(header).to_have_attribute("aria-sort", "ascending")
    board.publish(**{NAVER: "1000000"})
    board.page.mouse.move(0, 0)
    eventually(lambda: board.isins() == [SAMSUNG, HYNIX, NAVER])


def test_an_instrument_has_a_chart_and_polling_beside_pushing(board: Board) -> None:
    """By keyboard: Enter opens, Escape closes and the focus is back where it was.

    Nothing is polled before the visitor has chosen the tab, nor after it.
    """
    polls: list[str] = []
    # Which venues and sessions there are is asked once, whatever is polled.
    board.page.on(
        "request",
        lambda r: re.search(r"/v1/quotes/[^?]*$", r.url) and polls.append(r.url),
    )
    for price in ("201000", "201500"):
        board.publish(**{SAMSUNG: price})
    board.is_right()
    # The history takes a window in a little later than clients do.
    eventually(lambda: board.history(SAMSUNG) == ["199400", "201000", "201500"])
    page = board.page
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    while page.get_by_role("grid").get_attribute("aria-activedescendant") != (
        f"row-{SAMSUNG}"
    ):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="삼성전자")).to_be_focused()
    expect(board.row(SAMSUNG)).to_have_attribute("aria-selected", "true")
    chart = page.get_by_role("img", name=re.compile("Chart of 삼성전자: 3 windows"))
    expect(chart).to_be_visible()
    board.publish(**{SAMSUNG: "203000"})
    expect(
        page.get_by_role("img", name=re.compile("4 windows .* to 203,000"))
    ).to_be_visible()
    page.get_by_text("Newest windows as a table").click()
    prices = page.locator(".windows tbody tr td:nth-child(2)")
    expect(prices).to_have_text(["203,000", "201,500", "201,000", "199,400"])
    assert polls == []
    page.get_by_role("tab", name="Chart").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Polling")).to_be_focused()
    expect(chart).to_have_count(0)
    expect(page.locator(".side.polled .price")).to_have_text("203,000")
    assert len(polls) == 1
    board.publish(**{SAMSUNG: "204000"})
    expect(page.locator(".side.polled .verdict")).to_contain_text("out of date")
    expect(page.locator(".side.pushed .price")).to_have_text("204,000")
    expect(page.locator(".side.pushed .verdict")).to_have_text("up to date")
    assert grave_findings(page) == []
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_have_count(0)
    expect(page.get_by_role("grid")).to_be_focused()


def test_it_is_for_everyone_in_light_and_dark(board: Board) -> None:
    """No serious finding; the switches are kept."""
    page = board.page
    for scheme in ("light", "dark"):
        page.locator("#theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        assert grave_findings(page) == []
    page.locator("#colours").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-colours", "western")
    # What axe took may have been more than three windows.
    board.publisher.publish()
    board.is_in_state("Live")
    assert grave_findings(page) == []


def test_it_says_since_when_it_is_stale(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """A gateway without windows, then without a gateway; it recovers by itself."""
    page.add_init_script("Math.random = () => 0.02")
    publisher, port = Publisher(client, window_ms=200), free_port()
    banner = page.locator("#banner")
    with running_gateway(redis_url, port=port, heartbeat_ms=500) as gateway:
        board = Board(page, publisher, gateway)
        board.publish(**{SAMSUNG: "1", NAVER: "2"})
        gateway.wait_until(1)
        page.goto(board.url)
        board.is_in_state("Stale")
        expect(banner).to_contain_text("No new prices since")
        assert grave_findings(page) == []
        eventually(board.revive)
        expect(banner).to_be_hidden()
        board.is_right()
    board.is_in_state("Offline")
    expect(banner).to_contain_text(re.compile(r"since \d\d:\d\d:\d\d.* ago"))
    with running_gateway(redis_url, port=port, heartbeat_ms=500):
        eventually(board.revive)
        board.is_right()


def test_minutes_without_a_connection_are_filled_in(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """A line has their closes once the gateway, which has just started, looked back."""
    page.add_init_script("Math.random = () => 0.02")
    publisher, port = Publisher(client), free_port()
    minute = FIRST_WINDOW // 60_000 * 60_000

    def publish(number: int, price: str) -> None:
        at_ms = minute + 60_000 * number
        made_us = (at_ms - FIRST_WINDOW - 1_000) * 1_000
        publisher.publish_at(at_ms, make_row(SAMSUNG, price, made_us))

    line = page.locator(f"#row-{SAMSUNG} .spark path")
    with running_gateway(redis_url, port=port, heartbeat_ms=500):
        publish(1, "1")
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator(f"#row-{SAMSUNG} .price")).to_have_text("1")
        publish(2, "5")
        expect(line).to_have_attribute("d", "M0,200L960,20")
    expect(page.locator("#state")).to_have_text("Offline")
    for number, price in enumerate(["4", "3", "9"], start=3):
        publish(number, price)
    with running_gateway(redis_url, port=port, heartbeat_ms=500):
        expect(line).to_have_attribute("d", re.compile(r"^M0,200(L[\d,]+){4}$"))
        expect(page.locator(f"#row-{SAMSUNG} .price")).to_have_text("9")


def test_a_lost_connection_counts_down_and_can_be_made_at_once(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """The banner says how long until the next try; a button does not wait for it."""
    publisher, port = Publisher(client), free_port()
    proxy = Proxy(port, take_all)
    banner = page.locator("#banner")
    with running_gateway(redis_url, port=port, heartbeat_ms=500) as gateway:
        board = Board(page, publisher, gateway)
        board.url = f"http://127.0.0.1:{proxy.port}/"
        board.publish(**{SAMSUNG: "1"})
        board.open()
        expect(page.get_by_role("button", name="Try now")).to_be_hidden()
        page.evaluate("Math.random = () => 600")
        proxy.pause()
        board.is_in_state("Offline")
        left = eventually(lambda: seconds_left(banner))
        eventually(lambda: 0 < seconds_left(banner) < left - 1)
        proxy.resume()
        page.get_by_role("button", name="Try now").click()
        eventually(board.revive)
        expect(banner).to_be_hidden()
    proxy.close()


def seconds_left(banner: Locator) -> int:
    """Return in how many seconds the banner says the next try is; 0 if it does not."""
    found = re.search(r"next try in (\d+) s", banner.inner_text())
    return int(found[1]) if found else 0


def test_a_token_opens_the_stream_and_the_rest(
    page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """It is in the part of the address that no server gets."""
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    with running_gateway(redis_url, token_key_file=key) as gateway:
        board = Board(page, Publisher(client), gateway)
        board.publish(**{SAMSUNG: "199400"})
        board.open(f"#token={make_token(600)}")
        board.row(SAMSUNG).click()
        page.get_by_role("tab", name="Polling").click()
        expect(page.locator(".side.polled .price")).to_have_text("199,400")


def test_every_instrument_at_full_rate_stays_smooth(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """Few rows are in the document, all can be reached, each window is measured."""
    isins = make_isins(EVERY_INSTRUMENT)
    publisher = Publisher(client)
    publish_every(publisher, isins, 1)
    with running_gateway(redis_url) as gateway:
        page.goto(f"http://127.0.0.1:{gateway.port}/")
        expect(page.locator("#instruments")).to_have_text("2,879")
        grid = page.get_by_role("grid")
        expect(grid).to_have_attribute("aria-rowcount", str(EVERY_INSTRUMENT + 1))
        page.get_by_role("columnheader", name="ISIN").get_by_role("button").click()
        for seq in (2, 3):
            prices = publish_every(publisher, isins, seq)
            expect(page.locator("#changed")).to_have_text("2,879")
            first = page.locator(f"#row-{isins[0]} .price")
            expect(first).to_have_text(prices[0])
        assert page.locator("#rows tr").count() < 60
        grid.focus()
        for key, index in [
            ("End", EVERY_INSTRUMENT - 1),
            ("ArrowUp", EVERY_INSTRUMENT - 2),
        ]:
            page.keyboard.press(key)
            row = page.locator(f"#row-{isins[index]}")
            expect(row).to_be_in_viewport()
            expect(row).to_have_attribute("aria-rowindex", str(index + 2))
            expect(grid).to_have_attribute(
                "aria-activedescendant", f"row-{isins[index]}"
            )
        assert page.locator("#rows tr").count() < 60
        measures = 'performance.getEntriesByName("window-update").length'
        eventually(lambda: page.evaluate(measures) >= 1)


def publish_every(publisher: Publisher, isins: list[str], seq: int) -> list[str]:
    """Publish a window in which every instrument has a new price; return the prices."""
    prices = [str(random.randrange(100, 999)) for _ in isins]
    rows: list[Row] = [
        make_row(isin, price, seq) for isin, price in zip(isins, prices, strict=True)
    ]
    publisher.publish(*rows)
    return prices
