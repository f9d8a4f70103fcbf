"""The market board in Korean, in a real Chromium; whose time a time is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import NAMES, Board, publish_trade, running_board
from tests.e2e.words import english_left
from tests.gateway.samples import HYNIX, SAMSUNG

pytestmark = [pytest.mark.browser, pytest.mark.redis]


@pytest.fixture
def visitor() -> dict[str, Any]:
    """Somebody who reads Korean and is far from Korea."""
    return {"locale": "ko-KR", "timezone_id": "America/New_York"}


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of two instruments, live, in Korean."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(NAMES, "utf-8")
    prices = {SAMSUNG: "199400", HYNIX: "900000.50"}
    with running_board(page, client, instruments, prices) as board:
        board.resize(1440)
        publish_trade(board, 2, SAMSUNG, "201000", volume=3_000, value=1_780_000_000)
        publish_trade(board, 3, HYNIX, "890000", volume=45_600, value=29_182_641_000)
        expect(board.row(HYNIX).locator(".turnover")).to_have_text("292억")
        yield board


def is_korean(page: Page) -> None:
    """Look at whatever the page shows or reads out: no English, nothing grave."""
    assert english_left(page) == []
    assert grave_findings(page) == []


def test_who_asks_for_korean_gets_it_everywhere(board: Board) -> None:
    """The table, an instrument, the dialogs; sums in units of ten thousand."""
    page = board.page
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    expect(page.locator("#state")).to_have_text("실시간")
    expect(page).to_have_title("tickthrottle: 실시간 시세")
    headers = page.get_by_role("columnheader").all()
    titles = [header.inner_text().strip("↑↓ \n") for header in headers]
    assert " ".join(titles) == (
        "관심 종목명 현재가 등락률 추이 고저 거래대금 거래량 체결 체결시각 현지"
    )
    samsung = board.row(SAMSUNG)
    expect(samsung.locator(".turnover")).to_have_text("17.8억")
    expect(samsung.locator(".volume")).to_have_text("3,000")
    expect(board.row(HYNIX).locator(".volume")).to_have_text("4.56만")
    is_korean(page)
    samsung.locator(".price").click()
    chart = page.get_by_role("img", name=re.compile(r"삼성전자 차트: .* 2개 구간"))
    expect(chart).to_be_visible()
    page.get_by_text("최근 구간 표로 보기").click()
    page.get_by_role("tab", name="폴링").click()
    expect(page.locator(".side.polled .price")).to_have_text("201,000")
    assert english_left(page) == []
    page.get_by_role("tab", name="차트").click()
    page.get_by_label("현재가", exact=True).fill("201,500")
    page.get_by_role("button", name="알림 설정").click()
    publish_trade(board, 4, SAMSUNG, "202000", volume=3_001, value=1_780_202_000)
    expect(page.locator("#told")).to_contain_text(
        "삼성전자: 201,500 이상 상승, 현재가 202,000"
    )
    is_korean(page)
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_have_count(0)
    for name, dialog in (
        ("columns", "표시 항목"),
        ("lists", "관심종목 목록"),
        ("alerts", "알림"),
    ):
        page.locator(f"#{name}").click()
        expect(page.get_by_role("dialog", name=dialog)).to_be_visible()
        assert english_left(page) == []
        page.keyboard.press("Escape")
    for view, part in (("히트맵", "#map"), ("차트", "#charts"), ("표", ".scroller")):
        page.get_by_role("button", name=view, exact=True).click()
        expect(page.locator(part)).to_be_visible()
        is_korean(page)
    page.fill("#search", "없는 종목")
    expect(page.locator("#empty")).to_have_text("조건에 맞는 종목이 없습니다.")


def test_a_switch_changes_the_language_and_is_kept(board: Board) -> None:
    """In place, with the instrument open and the focus where it was."""
    page = board.page
    board.row(SAMSUNG).locator(".price").click()
    expect(page.get_by_role("heading", name="삼성전자")).to_be_focused()
    page.get_by_role("button", name="English").focus()
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("#language")).to_be_focused()
    expect(page.locator("#state")).to_have_text("Live")
    expect(board.row(SAMSUNG).locator(".turnover")).to_have_text("1.78B")
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    page.reload()
    board.publisher.publish()
    board.is_live()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.get_by_role("columnheader", name="Turnover")).to_be_visible()
    page.get_by_role("button", name="한국어").click()
    expect(page.get_by_role("columnheader", name="거래대금")).to_be_visible()


def test_a_time_says_whose_it_is(board: Board) -> None:
    """By the browser's clock or Korea's; the choice is kept, and fits every width."""
    page = board.page
    time, header = board.row(SAMSUNG).locator(".time"), page.locator("th.time")
    expect(time).to_have_text("20:00:02")
    expect(header).to_contain_text("현지")
    page.locator("#zone").click()
    expect(time).to_have_text("09:00:02")
    expect(header).to_contain_text("KST")
    expect(page.locator("#figures .window dt")).to_have_text("기준 시각 KST")
    expect(time).to_have_attribute(
        "title", re.compile(r"2026\. 3\. 20\. .*9시 0분 2초")
    )
    board.row(SAMSUNG).locator(".price").click()
    expect(page.locator(".quote .size")).to_have_text(re.compile("09:00:02 KST"))
    page.keyboard.press("Escape")
    eventually(lambda: page.evaluate("location.hash") == "")
    page.reload()
    board.publisher.publish()
    board.is_live()
    expect(time).to_have_text("09:00:02")
    page.locator("#language").click()
    for width in (360, 700, 1024, 1440):
        board.resize(width)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cut = page.locator("thead th:not(.star)").evaluate_all(
            "(cells) => cells.filter((c) => c.scrollWidth > c.clientWidth).length"
        )
        assert cut == 0


def test_a_line_that_is_lost_is_told_in_korean(board: Board) -> None:
    """With the time since when, and the gateway's own words as this page says them."""
    page = board.page
    banner = page.locator("#banner")
    expect(page.locator("#state")).to_have_text("갱신 멈춤")
    expect(banner).to_contain_text(re.compile(r"\d\d:\d\d:\d\d 현지 이후로"))
    eventually(lambda: "동안 새 구간이 없습니다." in banner.inner_text())
    is_korean(page)
