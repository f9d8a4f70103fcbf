"""Every text of the board can be read in a real Chromium: none is cut or covered."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.conftest import eventually
from tests.e2e.board_page import SETTLED, Board, publish_trade, running_board
from tests.e2e.readable import SIZES, unreadable_texts
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.samples import make_isins

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(240)]

# Code, name, market, sector, previous close, and the prices of two windows.
LISTED = """
005930 삼성전자 KOSPI 전기·전자 249500 251000 252500
373220 LG에너지솔루션 KOSPI 전기·전자 398000 401500 395000
207940 삼성바이오로직스 KOSPI 의약품 1012000 1050000 1049000
005935 삼성전자우 KOSPI 전기·전자 199400 199400 199400
035420 NAVER KOSDAQ 소프트웨어·서비스 231000 229500 229000
247540 에코프로비엠 KOSDAQ 일반전기전자 98700 128300 128300
900110 이스트아시아홀딩스 KOSDAQ 섬유·의류 112 79 79
AAPL Apple_Inc. NASDAQ Technology 227.52 229.87 229.8651
BRK.A Berkshire_Hathaway NYSE Financials 731234.00 740120.25 741000.00
GOOG Alphabet_Inc._Class_C NASDAQ Communication_Services 189.50 188.00 188.10
SIRI Sirius_XM_Holdings NASDAQ Communication_Services 0.4512 0.4400 0.4401
BTCUSDT Bitcoin CRYPTO Layer_1 95123.12345678 97123.45000000 97123.45678901
SHIBUSDT Shiba_Inu CRYPTO Meme 0.00000812 0.00000846 0.00000850
PEPEUSDT Pepe CRYPTO Meme 0.0000000001234567 0.0000000001300000 0.0000000001312345
BTCIDR Bitcoin_Rupiah CRYPTO Layer_1 1204567000.00 1234567890.12 1234567891.10
ETHUSDT Ethereum CRYPTO Layer_1 2500.00000000 2500.00000000 2512.50000000
"""
MARKETS = [line.split() for line in LISTED.split("\n") if line]
CODES = [code for code, *_ in MARKETS]
ISINS = dict(zip(CODES, make_isins(len(CODES)), strict=True))

UNFOLD = """(panel) => {
  for (const fold of panel.querySelectorAll("details")) fold.open = true;
}"""


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of three kinds of markets, whose bars and movers have just begun."""
    lines = ["isin,code,name,market,sector,prev_close"]
    for code, name, market, sector, close, *_ in MARKETS:
        fields = ISINS[code], code, name, market, sector, close
        lines.append(",".join(fields).replace("_", " "))
    instruments = tmp_path / "instruments.csv"
    instruments.write_text("\n".join(lines) + "\n", "utf-8")
    bars = []
    for code, *_, first, last in MARKETS:
        low, high = sorted((first, last), key=Decimal)
        bars.append(make_bar(ISINS[code], prices=f"{first} {high} {low} {last}"))
    publisher = BarPublisher(client)
    publisher.publish(*bars)
    publisher.publish_movers(bars)
    first = {ISINS[code]: price for code, *_, price, _ in MARKETS}
    with running_board(page, client, instruments, first) as board:
        for number, (code, *_, price) in enumerate(MARKETS):
            sums = {"value": 9_876_543_210 // (number + 1), "volume": 1_234_567}
            publish_trade(board, 1_000 + number, ISINS[code], price, **sums)
        expect(board.row(ISINS["005930"])).to_contain_text("252,500")
        yield board


def unreadable(board: Board, size: tuple[int, int]) -> dict[str, list[str]]:
    """Return what cannot be read at a size, by what is shown."""
    page = board.page
    found: dict[str, list[str]] = {}

    def look(shown: str) -> None:
        page.evaluate(SETTLED, size[0])
        found[f"{size[0]} {shown}"] = unreadable_texts(page)

    page.set_viewport_size({"width": size[0], "height": size[1]})
    look("all")
    page.locator("#alerts").click()
    look("alerts")
    page.keyboard.press("Escape")
    for market in ("KOSPI", "NASDAQ", "CRYPTO") if size in SIZES[:2] else ():
        tile = page.locator("#glance button", has_text=market)
        tile.click()
        look(market)
        tile.click()
    for code in ("247540", "BTCIDR"):
        page.evaluate("(code) => { location.hash = `#/${code}`; }", code)
        expect(page.locator(".detail .candles")).to_be_visible()
        page.locator(".detail").evaluate(UNFOLD)
        look(code)
    for tab in ("polling", "trades"):
        page.locator(f"#tab-{tab}").click()
        look(tab)
    for view, part in (("map", "#map canvas"), ("charts", "#charts canvas")):
        page.evaluate("(view) => { location.hash = `#/${view}`; }", view)
        page.locator(part).first.wait_for()
        look(view)
    page.locator("#views button").first.click()
    return {shown: texts for shown, texts in found.items() if texts}


def test_every_text_can_be_read_at_every_size_and_price(board: Board) -> None:
    """In both languages; names may end in dots, figures may not, but with a title."""
    page = board.page
    found = [unreadable(board, size) for size in SIZES]
    page.locator("#language").click()
    page.emulate_media(color_scheme="dark")
    found += [unreadable(board, size) for size in SIZES]
    page.locator("#language").click()
    page.emulate_media(color_scheme="light")
    assert [one for one in found if one] == []
    digits_are_in_titles(board)
    the_panel_stays(board)
    a_chart_is_as_wide_as_its_panel(board)
    the_head_scrolls_away(board)


def digits_are_in_titles(board: Board) -> None:
    """Zeros are shortened, and so is a difference of many places."""
    board.resize(2560)
    for code, text, title, difference in (
        ("SHIBUSDT", "0.0₅850", "0.00000850", "▲ 0.0₆38"),
        ("ETHUSDT", "2,512.50", "2,512.50000000", "▲ 12.50"),
        ("BTCUSDT", "97,123.45678901", None, "▲ 2,000.33"),
    ):
        price = board.row(ISINS[code]).locator(".price")
        expect(price).to_have_text(text)
        assert price.get_attribute("title") == title
        expect(board.row(ISINS[code]).locator(".difference")).to_have_text(difference)
    rise = board.row(ISINS["BTCUSDT"]).locator(".difference")
    assert rise.get_attribute("title") == "▲ 2,000.33333223"


def the_panel_stays(board: Board) -> None:
    """On a wide screen it is a row's, which no address names, until one is opened."""
    page = board.page
    title = page.locator("#detail-title")
    expect(title).to_be_visible()
    assert page.evaluate("location.hash") in ("", "#/")
    board.row(ISINS["AAPL"]).locator(".price").click()
    expect(title).to_have_text("Apple Inc.")
    expect(title).to_be_focused()
    page.keyboard.press("Escape")
    expect(title).to_have_text("삼성전자")
    assert ISINS["AAPL"] not in page.evaluate("location.hash")


def a_chart_is_as_wide_as_its_panel(board: Board) -> None:
    """It becomes narrower with it, from a whole page to what is beside the table."""
    page = board.page
    board.resize(1024)
    board.row(ISINS["AAPL"]).locator(".price").click()
    expect(page.locator(".detail canvas").first).to_be_visible()
    board.resize(1440)
    assert unreadable_texts(page) == []
    page.keyboard.press("Escape")


def the_head_scrolls_away(board: Board) -> None:
    """On a low screen all of it is the rows' as soon as they are scrolled."""
    page = board.page
    page.set_viewport_size({"width": 844, "height": 390})
    page.evaluate(SETTLED, 844)
    page.locator(".scroller").evaluate("(scroller) => scroller.scrollBy(0, 30)")
    eventually(lambda: page.evaluate("scrollY") > 100)
    box = page.locator(".scroller").bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["height"] > 350
