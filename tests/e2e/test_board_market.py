"""The market board's day: turnover, ranges, marks, markets, columns, watch-lists."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import Board, running_board
from tests.e2e.board_page import publish_trade as publish
from tests.gateway.samples import FIRST_WINDOW, HYNIX, NAVER, SAMSUNG, make_row

pytestmark = [pytest.mark.browser, pytest.mark.redis]

WIDTHS = [360, 1024, 1440, 2560]
INSTRUMENTS = f"""isin,code,name,market,sector,prev_close,tick_table,status
{SAMSUNG},005930,삼성전자,KOSPI,반도체,200000,krx,
{HYNIX},000660,SK하이닉스,KOSPI,반도체,900000,krx,halted
{NAVER},035420,네이버,KOSDAQ,인터넷,10000,krx,
"""

# Keeps which prices light up, and go out.
WATCH_LIGHTS = """() => {
  window.lights = [];
  new MutationObserver((changes) => changes.forEach(({ target }) =>
    window.lights.push([target.parentNode.id, target.dataset.lit ?? null]))).observe(
    document.querySelector("#rows"), { attributeFilter: ["data-lit"], subtree: true });
}"""


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of three instruments whose trades say what was traded in their day."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(INSTRUMENTS, "utf-8")
    prices = {SAMSUNG: "200000", HYNIX: "899000", NAVER: "10000"}
    with running_board(page, client, instruments, prices) as board:
        board.resize(1440)
        publish(board, 1_001, SAMSUNG, "201000", volume=3_000, value=603_000_000)
        publish(board, 1_002, HYNIX, "890000", volume=2_000, value=1_780_000_000)
        publish(board, 1_003, NAVER, "13000", volume=9_000, value=117_000_000)
        expect(board.row(NAVER).locator(".turnover")).to_have_text("117M")
        yield board


def is_ordered(board: Board, *isins: str) -> None:
    """Wait until these are the rows, in this order."""
    eventually(lambda: board.isins() == list(isins))


def columns(board: Board) -> list[str]:
    """Return what the columns are called, but for the star's."""
    headers = board.page.get_by_role("columnheader").all()
    return [header.inner_text().strip("↑↓ \n") for header in headers[1:]]


def test_rows_are_in_the_order_of_turnover(board: Board) -> None:
    """Shortened for the eye, with every digit in the title; volume beside it."""
    is_ordered(board, HYNIX, SAMSUNG, NAVER)
    header = board.page.get_by_role("columnheader", name="Turnover")
    expect(header).to_have_attribute("aria-sort", "descending")
    turnover = board.row(HYNIX).locator(".turnover")
    expect(turnover).to_have_text("1.78B")
    expect(turnover).to_have_attribute("title", "1,780,000,000")
    expect(board.row(SAMSUNG).locator(".volume")).to_have_text("3.00K")
    publish(board, 1_004, NAVER, "12900", volume=400_000, value=5_160_000_000)
    board.page.mouse.move(0, 0)
    is_ordered(board, NAVER, HYNIX, SAMSUNG)


def test_a_row_shows_its_range_and_what_stands_in_its_way(board: Board) -> None:
    """Since the page opened; a limit is marked while the price is there, a halt too."""
    samsung, naver = board.row(SAMSUNG), board.row(NAVER)
    expect(samsung.locator(".range")).to_contain_text("from 200,000 to 201,000")
    expect(samsung.locator(".spark path")).to_have_attribute("d", "M0,200L960,20")
    expect(naver.locator(".mark")).to_have_text("limit ▲")
    expect(board.row(HYNIX).locator(".mark")).to_have_text("halted")
    expect(samsung.locator(".mark")).to_have_count(0)
    publish(board, 1_004, NAVER, "12990", volume=9_001, value=117_012_990)
    expect(naver.locator(".mark")).to_have_count(0)
    publish(board, 1_005, NAVER, "7000", volume=9_002, value=117_019_990)
    expect(naver.locator(".mark")).to_have_text("limit ▼")
    expect(naver.locator(".range")).to_contain_text("from 7,000 to 13,000")


def test_the_day_is_the_streams_where_it_tells_one(board: Board) -> None:
    """With what came since, at once and after a reload; else it is as trades say."""
    page, samsung = board.page, board.row(SAMSUNG)
    header = page.get_by_role("columnheader", name="Range")
    foot, panel = page.locator(".foot"), page.locator(".detail .day")
    expect(header).to_have_attribute("title", re.compile("since this page opened"))
    told = "Range is of the newest half hour and since this page opened."
    expect(foot).to_contain_text(told)
    day = b"!1773932400000,9,4000,803000000.5,210000,199000,200500"
    board.publisher.publish(make_row(SAMSUNG, "201500", 1_004)._replace(day=day))
    expect(samsung.locator(".range")).to_contain_text(
        "of its day, from 199,000 to 210,000"
    )
    expect(samsung.locator(".turnover")).to_have_attribute("title", "803,000,000.5")
    expect(samsung.locator(".volume")).to_have_text("4.00K")
    expect(header).to_have_attribute("title", re.compile("of the stock's day"))
    expect(foot).not_to_contain_text(told)
    board.publisher.publish(make_row(SAMSUNG, "211000", 1_005))
    for is_loaded_anew in (False, True):
        if is_loaded_anew:
            page.reload()
        expect(samsung.locator(".range")).to_contain_text("from 199,000 to 211,000")
        expect(samsung.locator(".turnover")).to_have_text("811M")
        expect(samsung.locator(".volume")).to_have_attribute("title", "4,040")
    # Nobody has told the day of another stock.
    expect(board.row(HYNIX).locator(".range")).not_to_contain_text("of its day")
    expect(board.row(HYNIX).locator(".volume")).to_have_text("2.00K")
    samsung.locator(".price").click()
    expect(panel).to_contain_text("Open200,500High211,000Low199,000Volume4,040")
    expect(panel).to_contain_text("VWAP200,851.5")
    board.publisher.publish(make_row(SAMSUNG, "198000", 1_006))
    expect(panel).to_contain_text("Low198,000Volume4,080")


def test_a_price_has_gone_somewhere_before_the_page_was_open(board: Board) -> None:
    """Lines and ranges begin with closes of minutes; what comes goes on from there."""
    page, samsung, publisher = board.page, board.row(SAMSUNG), board.publisher
    minute = FIRST_WINDOW // 60_000 * 60_000
    for number, price in enumerate(["205000", "195000", "202000"], start=2):
        row = make_row(SAMSUNG, price, 1_003 + number)
        publisher.publish_at(minute + 60_000 * number, row)
    publisher.publish_at(minute + 242_000, make_row(SAMSUNG, "201000", 1_010))
    gateway = board.gateway
    eventually(lambda: json.loads(gateway.get("/v1/trends")[1])["count"] == 1)
    page.reload()
    publisher.publish_at(minute + 244_000)
    board.is_in_state("Live")
    path = samsung.locator(".spark path")
    # The last price is that of the snapshot, by its own time.
    expect(path).to_have_attribute("d", re.compile(r"^M0,\d+(L[\d,]+){3}$"))
    expect(samsung.locator(".range")).to_contain_text("from 195,000 to 205,000")
    publisher.publish_at(minute + 246_000, make_row(SAMSUNG, "210000", 1_011))
    expect(path).to_have_attribute("d", re.compile(r"L960,20$"))
    expect(samsung.locator(".range")).to_contain_text("from 195,000 to 210,000")


def test_a_price_that_changes_lights_up_for_a_moment(board: Board) -> None:
    """In the colour of its step, whatever its change; not where motion is unwanted."""
    page = board.page
    expect(page.locator("[data-lit]")).to_have_count(0)
    page.evaluate(WATCH_LIGHTS)
    publish(board, 1_004, SAMSUNG, "200500", volume=3_001, value=603_200_500)
    lights = [[f"row-{SAMSUNG}", "down"], [f"row-{SAMSUNG}", None]]
    eventually(lambda: page.evaluate("lights") == lights)
    page.emulate_media(reduced_motion="reduce")
    publish(board, 1_005, SAMSUNG, "200600", volume=3_002, value=603_401_100)
    expect(board.row(SAMSUNG).locator(".price")).to_have_text("200,600")
    assert page.evaluate("lights") == lights


def test_a_tile_tells_of_a_market_and_filters(board: Board) -> None:
    """By pointer and keyboard, with a sector besides."""
    page = board.page
    tiles = page.locator("#glance button")
    expect(tiles.locator(".market")).to_have_text(["All", "KOSPI", "KOSDAQ"])
    expect(tiles.locator(".sum")).to_have_text(["2.50B", "2.38B", "117M"])
    kospi = page.get_by_role("button", name="KOSPI 2.38B ▲ 1 up, 0 unchanged, ▼ 1 down")
    expect(kospi).to_have_attribute(
        "title",
        "KOSPI: of 2 stocks that have traded, 1 are above their previous close, 0 at "
        "it, 1 below. Turnover of the day so far: 2,383,000,000, the sum over its "
        "stocks.",
    )
    expect(kospi).to_have_attribute("aria-pressed", "false")
    kospi.click()
    is_ordered(board, HYNIX, SAMSUNG)
    expect(kospi).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#shown")).to_have_text("2 found")
    tiles.nth(0).focus()
    page.keyboard.press("Enter")
    is_ordered(board, HYNIX, SAMSUNG, NAVER)
    page.locator("#sector").select_option("인터넷")
    is_ordered(board, NAVER)
    tiles.nth(1).click()
    expect(page.locator("#empty")).to_have_text("Nothing matches.")
    page.get_by_role("button", name="No longer 인터넷").click()
    is_ordered(board, HYNIX, SAMSUNG)


def test_columns_can_be_chosen_and_moved_and_are_kept(board: Board) -> None:
    """By keyboard as well; rows close together have less height."""
    page = board.page
    before = columns(board)
    assert before[:3] == ["Stock", "Price", "Change"]
    assert before[-4:] == ["Turnover", "Volume", "Trades", "Last trade local"]
    height = page.locator("#rows tr").first.evaluate("(row) => row.offsetHeight")
    page.locator("#columns").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Columns")
    dialog.get_by_label("Trades", exact=True).uncheck()
    expect(dialog.get_by_label("Price", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="Move Change left").focus()
    page.keyboard.press("Enter")
    dialog.get_by_label("Compact rows").check()
    assert grave_findings(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("#columns")).to_be_focused()
    page.reload()
    board.publisher.publish()
    board.is_in_state("Live")
    expect(board.row(SAMSUNG)).to_contain_text("삼성전자")
    eventually(lambda: columns(board)[:3] == ["Stock", "Change", "Price"])
    assert "Trades" not in columns(board)
    lower = page.locator("#rows tr").first.evaluate("(row) => row.offsetHeight")
    assert lower < height
    page.locator("#columns").click()
    dialog.get_by_role("button", name="Reset").click()
    eventually(lambda: columns(board)[:3] == ["Stock", "Price", "Change"])


def test_watch_lists_have_names_and_go_out_and_in_as_text(board: Board) -> None:
    """Each has its own stars; what is no instrument is told; the browser keeps them."""
    page = board.page
    board.row(NAVER).get_by_role("button").click()
    page.locator("#lists").click()
    dialog = page.get_by_role("dialog", name="Watch-lists")
    text = dialog.locator("#list-text")
    expect(text).to_have_value(f"{NAVER}  # 네이버")
    name = dialog.locator("#list-name")
    name.fill("반도체")
    name.press("Enter")
    expect(text).to_have_value("")
    text.fill(f"000660\n{SAMSUNG} # one\nwhat")
    dialog.get_by_role("button", name="Apply").click()
    status = dialog.get_by_role("status")
    expect(status).to_have_text("The list has 2 stocks now. Not known: what.")
    name.fill("반도체")
    name.press("Enter")
    expect(status).to_have_text("There is a list “반도체”.")
    assert grave_findings(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.locator("#watched").click()
    is_ordered(board, HYNIX, SAMSUNG)
    page.reload()
    board.publisher.publish()
    board.is_in_state("Live")
    expect(page.locator("#watched")).to_contain_text("반도체")
    is_ordered(board, HYNIX, SAMSUNG)
    page.locator("#lists").click()
    dialog.locator("#list").select_option("Watch-list")
    is_ordered(board, NAVER)
    dialog.get_by_role("button", name="Delete").click()
    is_ordered(board, HYNIX, SAMSUNG)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_day_is_for_everyone_at_every_width(board: Board, scheme: str) -> None:
    """No serious finding; neither the page nor the table grows wider than it is."""
    page = board.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for width in WIDTHS:
        board.resize(width)
        board.publisher.publish()
        board.is_in_state("Live")
        assert grave_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        scroller = page.locator(".scroller")
        assert scroller.evaluate("(table) => table.scrollWidth <= table.clientWidth")


def test_the_market_comes_first_and_the_stream_behind_a_line(
    page: Page, client: redis.Redis, tmp_path: Path
) -> None:
    """Whether it is open, and what all its shares are worth beside yesterday."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(
        "isin,code,name,market,prev_close,listed_shares,currency\n"
        f"{SAMSUNG},005930,삼성전자,KOSPI,200000,5000,KRW\n"
        f"{HYNIX},000660,SK하이닉스,KOSPI,900000,500,KRW\n"
        f"{NAVER},035420,네이버,KOSDAQ,10000,,KRW\n",
        "utf-8",
    )
    prices = {SAMSUNG: "202000", NAVER: "12000"}
    with running_board(page, client, instruments, prices, "24/7") as board:
        expect(page.locator("#hours")).to_have_text("24/7 is open.")
        level = page.locator("#glance .level")
        expect(level).to_have_text("Board index 1,006.90 +0.69%")
        board.publish(**{HYNIX: "918000"})
        expect(level).to_have_text("Board index 1,013.10 +1.31%")
        window = page.locator("#window")
        expect(window).to_be_hidden()
        page.get_by_text("About the stream").click()
        expect(window).to_be_visible()
        for width in WIDTHS:
            board.resize(width)
            board.publisher.publish()
            board.is_in_state("Live")
            assert grave_findings(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_closed_market_says_when_it_opens(
    page: Page, client: redis.Redis, tmp_path: Path
) -> None:
    """In place of how long no trade has come; in the visitor's language and zone."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(INSTRUMENTS, "utf-8")
    days = "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"
    hours = f"UTC {days[time.gmtime().tm_wday - 3]} 00:00-00:01"
    with running_board(page, client, instruments, {SAMSUNG: "1"}, hours):
        notice = page.locator("#notice")
        expect(notice).to_contain_text(
            re.compile(r"UTC is closed, opens \w{3} .*\d\d:00 local\.")
        )
        page.get_by_role("button", name="한국어").click()
        expect(notice).to_contain_text("UTC 장이 닫혔습니다.")
