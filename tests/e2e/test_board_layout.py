"""The market board at every width, in a real Chromium: names can be read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import Board, running_board
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG

pytestmark = [pytest.mark.browser, pytest.mark.redis]

WIDTHS = [360, 641, 1024, 1440]
# What a column is cut off at, and the widths around it.
NARROW = [608, 640, 767, 768, 992, 993, 1151, 1152, 1279]

HOSTILE = """<img src=x onerror="document.title='owned'">"""
LONG = "긴" * 200
INSTRUMENTS = f"""isin,code,name,market,sector,prev_close
{SAMSUNG},005930,푸유셈디스플레이,KOSPI,반도체,200000
{HYNIX},000660,"{HOSTILE.replace('"', '""')}",<b>KOSPI</b>,"""
INSTRUMENTS += f""""'><script>1</script>",900000
{NAVER},035420,{LONG},KOSDAQ,인터넷,1000
"""

# The parts of a row: where its texts end, and whether anything is cut off.
ROW = """(isin) => {
  const row = document.getElementById(`row-${isin}`);
  const text = (name) => {
    const range = document.createRange();
    range.selectNodeContents(row.querySelector(`.${name}`));
    return range.getBoundingClientRect();
  };
  const cell = row.querySelector("td.name").getBoundingClientRect();
  const change = row.querySelector("td.change");
  const [difference, ratio] = [text("difference"), text("ratio")];
  const scroller = document.querySelector(".scroller");
  return {
    isNameWhole: text("title").right <= cell.right,
    isChangeWhole: change.scrollWidth <= change.clientWidth,
    gap: ratio.top >= difference.bottom - 2 ? 99 : ratio.left - difference.right,
    isPageWhole: document.documentElement.scrollWidth <= innerWidth,
    isTableWhole: scroller.scrollWidth <= scroller.clientWidth,
  };
}"""


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of three instruments: a usual one, a hostile one, one of a long name."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(INSTRUMENTS, "utf-8")
    prices = {SAMSUNG: "249500", HYNIX: "1050000", NAVER: "700"}
    with running_board(page, client, instruments, prices) as board:
        expect(board.row(SAMSUNG)).to_contain_text("디스플레이")
        yield board


def test_names_and_changes_can_be_read_at_every_width(board: Board) -> None:
    """No name gives way to a column, and no percentage runs into an amount."""
    whole: dict[str, Any] = {}
    for width in sorted(WIDTHS + NARROW):
        board.resize(width)
        for isin in (SAMSUNG, HYNIX):
            whole[f"{isin} {width}"] = board.page.evaluate(ROW, isin)
    bad = {
        place: row
        for place, row in whole.items()
        if not row["isChangeWhole"]
        or not row["isPageWhole"]
        or not row["isTableWhole"]
        or row["gap"] < 4
        or not (row["isNameWhole"] or HYNIX in place)
    }
    assert bad == {}


def test_rows_are_in_the_order_of_a_column_that_is_there(board: Board) -> None:
    """By trades; where they have no room, by change; and back."""
    page = board.page
    board.publish(**{NAVER: "710"})
    for width in (*WIDTHS, 360):
        board.resize(width)
        column, isins = "Trades", [NAVER, HYNIX, SAMSUNG]
        if width == 360:
            column, isins = "Change", [SAMSUNG, HYNIX, NAVER]
        header = page.get_by_role("columnheader", name=column)
        expect(header).to_have_attribute("aria-sort", "descending")
        eventually(lambda isins=isins: board.isins() == isins)
        count = page.get_by_role("columnheader").count()
        expect(page.get_by_role("grid")).to_have_attribute("aria-colcount", str(count))


def test_an_instrument_is_for_everyone_at_every_width(board: Board) -> None:
    """No serious finding, with an instrument open, and the page does not grow wider."""
    page = board.page
    for width in WIDTHS:
        board.resize(width)
        board.row(NAVER).locator(".price").click()
        expect(page.get_by_role("heading", name=LONG)).to_be_focused()
        assert grave_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        detail = page.locator(".detail")
        assert detail.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
        page.keyboard.press("Escape")
        expect(detail).to_have_count(0)


def test_what_an_instrument_list_holds_stays_text(board: Board) -> None:
    """Markup is shown as it is written, a long name ends in dots and has a title."""
    page = board.page
    for width in WIDTHS:
        board.resize(width)
        name = board.row(HYNIX).locator(".title")
        expect(name).to_have_text(HOSTILE)
        expect(name).to_have_attribute("title", HOSTILE)
        long = board.row(NAVER).locator(".title")
        expect(long).to_have_attribute("title", LONG)
        row = page.evaluate(ROW, NAVER)
        assert row["isTableWhole"]
        assert not row["isNameWhole"]
        cut = board.row(NAVER).locator("td.name, td.name .title")
        assert "ellipsis" in cut.evaluate_all(
            "(cells) => cells.map((cell) => getComputedStyle(cell).textOverflow)"
        )
        # Whatever turns writing round turns nothing else round.
        code = board.row(NAVER).locator(".under")
        expect(code).to_have_text("035420 · KOSDAQ · 인터넷")
    board.row(HYNIX).locator(".price").click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    expect(page.locator(".detail header")).to_contain_text("'><script>1</script>")
    markup = "main img:not([role]), main b:not(.strip *), main script"
    assert page.locator(markup).count() == 0
    assert page.title().startswith(HOSTILE)


# Whether the texts of a row are whole, and none lies over its neighbour.
FIGURES = """(isin) => {
  const row = document.getElementById(`row-${isin}`);
  const box = (part) => {
    const range = document.createRange();
    range.selectNodeContents(part);
    return range.getBoundingClientRect();
  };
  const [price, change] = ["price", "change"].map((n) => row.querySelector(`td.${n}`));
  const inside = (part, cell) => {
    const [own, its] = [box(part), cell.getBoundingClientRect()];
    return own.left >= its.left - 0.5 && own.right <= its.right + 0.5;
  };
  const ends = [...row.querySelectorAll(".ends span")].map(box);
  return {
    isPriceWhole: inside(price, price),
    isRatioWhole: inside(row.querySelector(".ratio"), change),
    isDifferenceWhole: inside(row.querySelector(".difference"), change),
    isTall: document.querySelector(".scroller").classList.contains("tall"),
    areEndsApart: ends.length < 2 || ends[0].right < ends[1].left,
  };
}"""


@pytest.mark.parametrize("width", [390, 768, 1024, 1440, 1920])
def test_a_price_of_any_market_fits(
    width: int, page: Page, client: redis.Redis, tmp_path: Path
) -> None:
    """Eight decimals, leading zeros, ten digits; all that is cut is a difference."""
    instruments = tmp_path / "instruments.csv"
    names = (SAMSUNG, "BTCUSDT", "95123.12345678"), (HYNIX, "SHIB", "0.00000812")
    names += ((NAVER, "BIG", "234567000.00"),)
    lines = (f"{isin},{code},{code},,,{close}" for isin, code, close in names)
    head = "isin,code,name,market,sector,prev_close"
    instruments.write_text("\n".join((head, *lines)) + "\n", "utf-8")
    first = {SAMSUNG: "97123.45678901", HYNIX: "0.00000846", NAVER: "1234567890.12"}
    with running_board(page, client, instruments, first) as board:
        board.resize(width)
        for number in range(3):
            board.publish(
                **{isin: price[:-1] + str(number) for isin, price in first.items()}
            )
        for isin in first:
            expect(board.row(isin).locator(".price")).to_contain_text("2")

            def is_right(isin: str = isin) -> bool:
                seen = page.evaluate(FIGURES, isin)
                is_cut = not seen.pop("isDifferenceWhole")
                return (seen.pop("isTall") or not is_cut) and all(seen.values())

            eventually(is_right)
