"""An open instrument of the market board, in a real Chromium: its address, its keys."""

import re

import pytest
import redis
from playwright.sync_api import Page, expect

from tests.conftest import eventually
from tests.e2e.board_page import Board
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.gateway.servers import running_gateway

pytestmark = [pytest.mark.browser, pytest.mark.redis]

PHONE, LAPTOP, DESK = 360, 1024, 1440

# How many points of the chart have more red than blue in them, more blue, more green.
COLOURS = """() => {
  const sums = { red: 0, blue: 0, green: 0 };
  for (const canvas of document.querySelectorAll(".chart canvas")) {
    if (!canvas.width || !canvas.height) continue;
    const { data } = canvas.getContext("2d").getImageData(
      0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) {
      const [red, green, blue, opacity] = data.slice(i, i + 4);
      if (opacity < 200) continue;
      if (red > blue + 90 && red > green + 90) sums.red += 1;
      if (blue > red + 90) sums.blue += 1;
      if (green > red + 60 && green > blue + 30) sums.green += 1;
    }
  }
  return sums;
}"""


def is_open(board: Board, isin: str, name: str) -> None:
    """Wait until this instrument is open, and the address says so."""
    expect(board.page.locator("#detail-title")).to_have_text(name)
    eventually(lambda: board.page.evaluate("location.hash") == f"#/{isin}")


def is_closed(board: Board) -> None:
    """Wait until no instrument is open, and the address names none."""
    expect(board.page.locator(".detail")).to_have_count(0)
    eventually(lambda: board.page.evaluate("location.hash") == "")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_back_closes_an_instrument_and_stays_on_the_page(
    board: Board, width: int
) -> None:
    """However many instruments were looked at; forward opens the last one again."""
    page = board.page
    board.resize(width)
    steps = page.evaluate("history.length")
    board.row(SAMSUNG).locator(".price").click()
    is_open(board, SAMSUNG, "삼성전자")
    assert page.title().startswith("삼성전자")
    page.keyboard.press("ArrowUp" if width == PHONE else "ArrowDown")
    is_open(board, NAVER, NAVER)
    page.go_back()
    is_closed(board)
    board.is_in_state("Live")
    page.go_forward()
    is_open(board, NAVER, NAVER)
    page.get_by_role("button", name="Close").click()
    is_closed(board)
    # Closing it any other way leaves no step behind to go back through.
    board.row(HYNIX).locator(".price").click()
    is_open(board, HYNIX, "SK하이닉스")
    page.keyboard.press("Escape")
    is_closed(board)
    assert page.evaluate("history.length") == steps + 1
    # Two at once, as a quick hand does.
    board.row(HYNIX).locator(".price").click()
    is_open(board, HYNIX, "SK하이닉스")
    page.evaluate(
        """(row) => {
          document.querySelector("[aria-label=Close]").click();
          document.getElementById(row).click();
        }""",
        f"row-{SAMSUNG}",
    )
    is_open(board, SAMSUNG, "삼성전자")


def test_a_link_opens_an_instrument(board: Board) -> None:
    """By ISIN or code, as it loads or in place; what names none is told as text."""
    page = board.page
    page.goto("about:blank")
    page.goto(f"{board.url}#/{SAMSUNG}")
    is_open(board, SAMSUNG, "삼성전자")
    page.get_by_role("button", name="Close").click()
    is_closed(board)
    page.goto("about:blank")
    page.goto(f"{board.url}#/000660")
    expect(page.locator("#detail-title")).to_have_text("SK하이닉스")
    page.goto(f"{board.url}#/005930")
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    page.goto(f"{board.url}#/%3Cimg%20src=x%3E")
    expect(page.locator(".detail")).to_have_count(0)
    expect(page.locator("#notice")).to_have_text(
        "No stock has the code or ISIN “<img src=x>” of this address."
    )
    page.goto(f"{board.url}#/KR7068270008")
    expect(page.locator(".detail")).to_contain_text("No trade of this stock has come.")
    expect(page.locator("#notice")).to_be_empty()


def test_a_link_can_be_copied(board: Board) -> None:
    """Without a clipboard it is shown."""
    page = board.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    board.row(SAMSUNG).locator(".price").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".detail header")).to_contain_text("Copied.")
    link = f"{board.url}#/{SAMSUNG}"
    assert page.evaluate("navigator.clipboard.readText()") == link
    page.context.clear_permissions()
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".detail header")).to_contain_text(link)


def test_a_token_stays_in_the_address_and_out_of_links(
    page: Page,
    client: redis.Redis,
    redis_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With an instrument open a page can be loaded again; others get no token."""
    key = tmp_path_factory.mktemp("key") / "token.key"
    key.write_text(SECRET)
    with running_gateway(redis_url, token_key_file=key) as gateway:
        board = Board(page, Publisher(client), gateway)
        board.publish(**{SAMSUNG: "199400"})
        token = make_token(600)
        board.open(f"#token={token}")
        board.row(SAMSUNG).locator(".price").click()
        eventually(
            lambda: page.evaluate("location.hash") == f"#/{SAMSUNG}&token={token}"
        )
        page.reload()
        expect(page.locator(".detail .quote .price")).to_have_text("199,400")
        page.evaluate(
            """() => {
              navigator.clipboard.writeText = (text) => void (window.link = text);
            }"""
        )
        page.get_by_role("button", name="Copy link").click()
        eventually(lambda: page.evaluate("window.link") == f"{board.url}#/{SAMSUNG}")
        page.get_by_role("button", name="Close").click()
        eventually(lambda: page.evaluate("location.hash") == f"#token={token}")


@pytest.mark.parametrize("width", [PHONE, 641, LAPTOP])
def test_a_tap_beside_an_instrument_closes_it_and_hits_nothing(
    board: Board, width: int
) -> None:
    """What lies under the sheet is out of reach, by hand and by keyboard."""
    page = board.page
    board.resize(width)
    board.row(SAMSUNG).locator(".price").click()
    is_open(board, SAMSUNG, "삼성전자")
    for _ in range(12):
        page.keyboard.press("Tab")
        assert not page.evaluate("!!document.activeElement.closest('.market')")
    search = page.locator("#search").bounding_box()
    assert search is not None
    page.mouse.click(search["x"] + 20, search["y"] + search["height"] / 2)
    is_closed(board)
    expect(page.get_by_role("grid")).to_be_focused()
    # The header is not covered.
    board.row(SAMSUNG).locator(".price").click()
    is_open(board, SAMSUNG, "삼성전자")
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    is_open(board, SAMSUNG, "삼성전자")


@pytest.mark.parametrize("width", [LAPTOP, DESK])
def test_arrows_go_from_instrument_to_instrument(board: Board, width: int) -> None:
    """From the panel, and from the table where it is beside; `/` searches."""
    page = board.page
    board.resize(width)
    grid = page.get_by_role("grid")
    order = [HYNIX, SAMSUNG, NAVER]
    names = {HYNIX: "SK하이닉스", SAMSUNG: "삼성전자", NAVER: NAVER}
    eventually(lambda: board.isins() == order)
    board.row(HYNIX).locator(".price").click()
    is_open(board, HYNIX, names[HYNIX])
    for key, isin in [
        ("ArrowUp", HYNIX),
        ("ArrowDown", SAMSUNG),
        ("ArrowDown", NAVER),
        ("ArrowDown", NAVER),
        ("ArrowUp", SAMSUNG),
    ]:
        page.keyboard.press(key)
        is_open(board, isin, names[isin])
        expect(board.row(isin)).to_have_attribute("aria-selected", "true")
        expect(grid).to_have_attribute("aria-activedescendant", f"row-{isin}")
    if width == DESK:
        grid.focus()
        page.keyboard.press("ArrowDown")
        is_open(board, NAVER, names[NAVER])
        page.keyboard.press("ArrowDown")
        expect(grid).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#detail-title")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("a/b")
    expect(page.locator("#search")).to_have_value("a/b")
    page.keyboard.press("ArrowDown")
    if width == DESK:
        is_open(board, NAVER, names[NAVER])
    else:
        is_closed(board)


def test_the_first_stops_lead_to_search_table_and_detail(board: Board) -> None:
    """By keyboard from the top of the page, each by one press."""
    page, search = board.page, board.page.locator("#search")
    for tabs, target in [(1, search), (2, page.get_by_role("grid"))]:
        page.reload()
        board.publisher.publish()
        board.is_live()
        for _ in range(tabs):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(target).to_be_focused()
    board.row(SAMSUNG).locator(".price").click()
    title = page.locator("#detail-title")
    expect(title).to_be_focused()
    page.locator("#stops").get_by_role("button", name="To the open stock").focus()
    page.keyboard.press("Enter")
    expect(title).to_be_focused()
    for landmark in ("search", "region"):
        expect(page.get_by_role(landmark).first).to_be_visible()


def test_the_keys_are_explained_on_the_page(board: Board) -> None:
    """In words, and to a screen reader of the table."""
    keys = board.page.locator("#keys")
    for word in ("/ searches", "Enter opens", "Esc closes", "Space stars"):
        expect(keys).to_contain_text(word)
    expect(board.page.get_by_role("grid")).to_have_attribute("aria-describedby", "keys")


def test_a_chart_has_the_colour_of_the_change(board: Board) -> None:
    """Red is up and blue is down, as in the table; the switch changes both."""
    page = board.page
    for seq in range(3):
        board.publish(**{SAMSUNG: str(210_000 + seq), HYNIX: str(800_000 + seq)})
    board.row(SAMSUNG).locator(".price").click()
    expect(page.locator(".quote .price")).to_have_class(re.compile("up"))
    eventually(lambda: page.evaluate(COLOURS)["red"] > 50)
    assert page.evaluate(COLOURS)["blue"] == 0
    page.locator("#colours").click()
    eventually(lambda: page.evaluate(COLOURS)["green"] > 50)
    page.locator("#colours").click()
    board.row(HYNIX).locator(".price").click()
    eventually(lambda: page.evaluate(COLOURS)["blue"] > 50)
    assert page.evaluate(COLOURS)["red"] == 0
