"""Thirteen things somebody does who sees the board first, and reads nothing.

A step is a press, a choice or a text that is typed, at something in view whose words
are what the visitor would look for. How many each takes is what docs/board.md says.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Locator, Page, expect

from tests.e2e.board_page import NAMES, Board, publish_trade, running_board
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.paths import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.redis]

SHARES = {"prev_close": "listed_shares", "200000": "5000", "900000.50": "200"}
INSTRUMENTS = "".join(
    f"{line},{SHARES.get(line.split(',')[-1], '')}\n"
    for line in [*NAMES.splitlines(), "KR7035420009,035420,NAVER,KOSDAQ,인터넷,10000"]
)


class Visitor:
    """Somebody at the page, whose steps are counted."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.page = board.page
        self.steps = 0

    def press(self, what: Locator) -> None:
        """Press what is in view."""
        expect(what).to_be_in_viewport()
        what.click()
        self.steps += 1

    def button(self, name: str) -> None:
        """Press a button by its words."""
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def type(self, label: str, text: str) -> None:
        """Write into a field by its words."""
        field = self.page.get_by_label(label)
        expect(field).to_be_in_viewport()
        field.fill(text)
        self.steps += 1


@pytest.fixture
def guest(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Visitor]:
    """A visitor of a board of three instruments of two markets."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(INSTRUMENTS, "utf-8")
    prices = {SAMSUNG: "199400", HYNIX: "900000.50", NAVER: "10000"}
    with running_board(page, client, instruments, prices, "24/7") as board:
        board.resize(1440)
        publish_trade(board, 2, SAMSUNG, "201000", value=1_780_000_000)
        publish_trade(board, 3, HYNIX, "890000", value=29_182_641_000)
        publish_trade(board, 4, NAVER, "10500", value=5_000_000)
        expect(board.row(HYNIX).locator(".turnover")).to_have_text("29.2B")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield Visitor(board)


def see_whether_it_is_open(guest: Visitor) -> None:
    """The head of the page says so."""
    expect(guest.page.locator("#hours")).to_have_text("24/7 is open.")


def see_how_the_market_stands(guest: Visitor) -> None:
    """Its tile has its board index and what it has gained."""
    level = guest.page.locator("#glance .level")
    expect(level).to_be_in_viewport()
    expect(level).to_have_text("Board index 1,002.54 +0.25%")


def see_what_rose_most(guest: Visitor) -> None:
    """The line above the table begins with it."""
    first = guest.page.locator("#day-movers li").first
    expect(first).to_be_in_viewport()
    expect(first).to_have_text("NAVER +5.00%")


def see_one_by_its_name(guest: Visitor) -> None:
    """Only its row is left, and beside it is all that there is of it."""
    guest.type("Search", "하이닉스")
    expect(guest.page.locator("#rows tr")).to_have_count(1)
    expect(guest.page.locator("#detail-title")).to_have_text("SK하이닉스")
    expect(guest.page.locator(".detail canvas").first).to_be_in_viewport()
    expect(guest.page.get_by_label("Search")).to_be_focused()
    guest.page.get_by_label("Search").fill("")
    expect(guest.page.locator("#detail-title")).to_have_count(0)


def open_an_instrument(guest: Visitor) -> None:
    """Its name is the panel's."""
    guest.press(guest.board.row(SAMSUNG).locator(".price"))
    expect(guest.page.locator("#detail-title")).to_have_text("삼성전자")


def share_it(guest: Visitor) -> None:
    """What is copied opens it."""
    guest.button("Copy link")
    expect(guest.page.get_by_text("Copied.")).to_be_visible()
    copied = guest.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{guest.board.url}#/{SAMSUNG}"


def watch_it(guest: Visitor) -> None:
    """The list has one instrument more."""
    panel = guest.page.locator(".detail")
    guest.press(panel.get_by_role("button", name="Watch 삼성전자"))
    expect(guest.page.locator("#watched .count")).to_have_text("1")


def set_an_alert(guest: Visitor) -> None:
    """It is told when the price is there."""
    field = guest.page.locator(".alerts").get_by_label("Price", exact=True)
    expect(field).to_be_in_viewport()
    field.fill("202000")
    guest.steps += 1
    guest.button("Set alert")
    publish_trade(guest.board, 5, SAMSUNG, "202000", value=1_790_000_000)
    expect(guest.page.locator("#told .text")).to_contain_text("has risen to 202,000")


def set_a_usual_alert(guest: Visitor) -> None:
    """It is told when the price is 5 % from the previous close."""
    guest.button("Alert at ±5 %")
    publish_trade(guest.board, 6, SAMSUNG, "190000", value=1_800_000_000)
    told = "is 5 % or more from its previous close: 190,000"
    expect(guest.page.locator("#told .text").first).to_contain_text(told)


def leave_it(guest: Visitor) -> None:
    """The market has the page to itself."""
    guest.button("Close")
    expect(guest.page.locator("#detail-title")).to_have_count(0)


def see_one_market(guest: Visitor) -> None:
    """Its tile is the filter."""
    tile = guest.page.get_by_role("button", name=re.compile("^KOSDAQ"))
    guest.press(tile)
    expect(guest.page.locator("#rows tr")).to_have_count(1)
    tile.click()


def see_the_map(guest: Visitor) -> None:
    """All of the market is one picture."""
    guest.button("Map")
    expect(guest.page.locator("#map canvas").first).to_be_visible()


def read_korean(guest: Visitor) -> None:
    """The page says everything in Korean."""
    guest.press(guest.page.locator("#language"))
    expect(guest.page.locator("html")).to_have_attribute("lang", "ko")


TASKS: dict[str, Callable[[Visitor], None]] = {
    "see whether the market is open": see_whether_it_is_open,
    "see how the market stands": see_how_the_market_stands,
    "see what rose most": see_what_rose_most,
    "see one's chart and day, by its name": see_one_by_its_name,
    "open one that is in view": open_an_instrument,
    "share its link": share_it,
    "put it on the watch-list": watch_it,
    "be told when its price is reached": set_an_alert,
    "be told when it has moved by 5 %": set_a_usual_alert,
    "close it": leave_it,
    "see one market": see_one_market,
    "see the market as a map": see_the_map,
    "read Korean": read_korean,
}


def test_a_first_visit_needs_no_documents(guest: Visitor) -> None:
    """Thirteen tasks one after the other, in as many steps as the page's text says."""
    text = (ROOT / "docs" / "board.md").read_text("utf-8")
    told = re.findall(r"^\| ([a-z][^|]+) \| (\d+) \|", text, re.M)
    taken = []
    for name, task in TASKS.items():
        guest.steps = 0
        task(guest)
        taken.append((name, str(guest.steps)))
    assert [one for one in told if one[0] in TASKS] == taken
