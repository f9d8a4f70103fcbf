"""The views of the market board in a real Chromium: the map, the charts, the switch."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page, Route, expect

from tests.conftest import eventually
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import Board, publish_trade, running_board
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(240)]

OTHERS = make_isins(9)
INSTRUMENTS = f"""isin,code,name,market,sector,prev_close,tick_table,status
{SAMSUNG},005930,삼성전자,KOSPI,반도체,200000,krx,
{HYNIX},000660,SK하이닉스,KOSPI,반도체,900000,krx,
{NAVER},035420,네이버,KOSDAQ,인터넷,10000,krx,
""" + "".join(
    f"{isin},{n:06d},종목{n},KOSDAQ,부품,1000,krx,\n" for n, isin in enumerate(OTHERS)
)

# Nothing is drawn until the map knows its size, and it is not there without rows.
DRAWN = """document.querySelector("#map .tiles")?.drawn() ?? { tiles: [], heads: [] }"""

# The colour in the corner of a tile, where nothing is written.
CORNER = """(isin) => {
  const tile = document.querySelector("#map .tiles").drawn()
    .tiles.find((one) => one.isin === isin);
  const canvas = document.querySelector("#map canvas");
  const data = canvas.getContext("2d").getImageData(tile.x + 2, tile.y + 2, 1, 1).data;
  const [red, green, blue] = data;
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 20) return "none";
  return most === red ? "red" : most === blue ? "blue" : "green";
}"""

# On a busy machine a page may be stale for a moment; its banner moves what is below.
WITHOUT_BANNER = """() => document.getElementById("banner")
  .style.setProperty("display", "none", "important")"""


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of twelve instruments, two of them large; its trades tell turnover."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(INSTRUMENTS, "utf-8")
    prices = {SAMSUNG: "200000", HYNIX: "900000", NAVER: "10000"}
    with running_board(page, client, instruments, prices) as board:
        board.resize(1440)
        page.evaluate(WITHOUT_BANNER)
        publish_trade(board, 1_001, SAMSUNG, "201000", value=600_000_000)
        publish_trade(board, 1_002, HYNIX, "890000", value=300_000_000)
        publish_trade(board, 1_003, NAVER, "10000", value=100_000_000)
        for n, isin in enumerate(OTHERS):
            publish_trade(board, 1_010 + n, isin, "1001", value=1_000_000)
        expect(board.page.locator("#instruments")).to_have_text("12")
        expect(board.row(SAMSUNG).locator(".turnover")).to_have_text("600M")
        expect(board.row(OTHERS[8])).to_contain_text("종목8")
        yield board


def show(board: Board, view: str) -> None:
    """Press the switch."""
    board.page.get_by_role("button", name=view, exact=True).click()
    is_shown(board, view)


def is_shown(board: Board, view: str) -> None:
    """Wait until a view is shown, and no other."""
    button = board.page.locator("#views [aria-pressed=true]")
    expect(button).to_have_text(view)
    for name, part in (("Table", ".scroller"), ("Map", "#map"), ("Charts", "#charts")):
        expect(board.page.locator(part)).to_have_count(int(name == view))


def is_at(board: Board, fragment: str) -> None:
    """Wait until the address has this part behind the page's own."""
    page = board.page
    eventually(lambda: page.evaluate("decodeURIComponent(location.hash)") == fragment)


def tiles(board: Board) -> dict[str, dict[str, int]]:
    """Return the box of each instrument's tile, once they are drawn."""
    boxes = eventually(lambda: board.page.evaluate(DRAWN)["tiles"])
    return {tile["isin"]: tile for tile in boxes}


def at(board: Board, box: dict[str, int], *, inset: int = 6) -> tuple[float, float]:
    """Return where a box of the map is on the page."""
    surface = board.page.locator("#map .surface").bounding_box()
    assert surface is not None
    return surface["x"] + box["x"] + inset, surface["y"] + box["y"] + inset


def head(board: Board, name: str) -> dict[str, int]:
    """Return the box of a group, once it is drawn."""

    def drawn() -> list[dict[str, int]]:
        heads: list[dict[str, Any]] = board.page.evaluate(DRAWN)["heads"]
        return [one for one in heads if one["name"] == name]

    return eventually(drawn)[0]


def test_views_and_groups_have_addresses_and_back_leads_back(board: Board) -> None:
    """A step each; an open instrument is one more; the view is kept in the browser."""
    page = board.page
    show(board, "Map")
    is_at(board, "#/map")
    page.mouse.click(*at(board, head(board, "반도체")))
    is_at(board, "#/map/반도체")
    expect(page.locator("#map h2")).to_have_text("반도체")
    eventually(lambda: set(tiles(board)) == {SAMSUNG, HYNIX})
    page.mouse.click(*at(board, tiles(board)[HYNIX]))
    expect(page.locator("#detail-title")).to_have_text("SK하이닉스")
    is_at(board, f"#/{HYNIX}")
    is_shown(board, "Map")
    page.go_back()
    expect(page.locator(".detail")).to_have_count(0)
    is_at(board, "#/map/반도체")
    # Whatever else leads up leaves no step behind.
    steps = page.evaluate("history.length")
    page.locator("#map .crumbs button").click()
    is_at(board, "#/map")
    eventually(lambda: len(tiles(board)) == 12)
    page.go_forward()
    is_at(board, "#/map/반도체")
    page.go_back()
    is_at(board, "#/map")
    assert page.evaluate("history.length") == steps
    show(board, "Charts")
    is_at(board, "#/charts")
    page.go_back()
    is_shown(board, "Map")
    page.go_back()
    is_shown(board, "Table")
    is_at(board, "")
    # A view takes the place of an open instrument.
    board.row(NAVER).locator(".price").click()
    is_at(board, f"#/{NAVER}")
    show(board, "Map")
    expect(page.locator(".detail")).to_have_count(0)
    # It is kept for addresses that name none.
    page.goto("about:blank")
    board.open()
    is_shown(board, "Map")
    is_at(board, "#/map")
    page.goto("about:blank")
    board.open(f"#/{SAMSUNG}")
    is_shown(board, "Map")
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    page.keyboard.press("Escape")
    is_at(board, "#/map")
    page.goto("about:blank")
    board.open("#/map/인터넷")
    eventually(lambda: set(tiles(board)) == {NAVER})
    show(board, "Table")
    page.goto("about:blank")
    board.open()
    is_shown(board, "Table")


def test_the_map_shows_turnover_as_area_and_change_as_colour(board: Board) -> None:
    """A window changes colours and no place; the switch changes both colours."""
    page = board.page
    show(board, "Map")
    boxes = tiles(board)
    area = {isin: box["width"] * box["height"] for isin, box in boxes.items()}
    assert area[SAMSUNG] / area[HYNIX] == pytest.approx(2, rel=0.1)
    assert area[HYNIX] / area[NAVER] == pytest.approx(3, rel=0.2)
    seen = {isin: page.evaluate(CORNER, isin) for isin in (SAMSUNG, HYNIX, NAVER)}
    assert seen == {SAMSUNG: "red", HYNIX: "blue", NAVER: "none"}
    # Calm: what trades a little more gets another colour, and stays where it is.
    page.evaluate(
        """() => {
          window.updates = [];
          new PerformanceObserver((list) => window.updates.push(
            ...list.getEntries().filter(({ name }) => name === "map-update")))
            .observe({ entryTypes: ["measure"] });
        }"""
    )
    before = page.evaluate(DRAWN)
    layouts = before["layouts"]
    publish_trade(board, 1_100, NAVER, "9000", value=101_000_000)
    eventually(lambda: page.evaluate(CORNER, NAVER) == "blue")
    assert tiles(board) == boxes
    assert page.evaluate(DRAWN)["layouts"] == layouts
    assert page.evaluate(DRAWN)["painted"] == before["painted"] + 1
    eventually(lambda: page.evaluate("updates.length") > 0)
    # What is wrong by a quarter is put right at once, with the same neighbours.
    publish_trade(board, 1_101, NAVER, "11000", value=2_000_000_000)
    eventually(lambda: page.evaluate(DRAWN)["layouts"] == layouts + 1)
    eventually(lambda: page.evaluate(CORNER, NAVER) == "red")
    box = tiles(board)[NAVER]
    assert box["width"] * box["height"] > area[SAMSUNG]
    page.locator("#colours").click()
    eventually(lambda: page.evaluate(CORNER, NAVER) == "green")
    assert page.evaluate(CORNER, HYNIX) == "red"
    page.locator("#colours").click()


def test_the_map_tells_of_a_tile_and_filters_apply(board: Board) -> None:
    """On hover, by keys, and as a table; markets, sectors, search and watch-list."""
    page = board.page
    board.row(SAMSUNG).get_by_role("button").click()
    show(board, "Map")
    page.mouse.move(*at(board, tiles(board)[SAMSUNG]))
    tip = page.locator("#map .tip")
    for text in (
        "삼성전자",
        "005930 · KOSPI · 반도체",
        "201,000 ▲ 1,000 +0.50%",
        "600M",
    ):
        expect(tip).to_contain_text(text)
    page.mouse.move(*at(board, head(board, "반도체")))
    expect(tip).to_contain_text("2 stocks")
    expect(tip).to_contain_text("▲ 1")
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)

    # By keys: from the largest tile to the right and back, in, up, and out again.
    surface = page.get_by_role("listbox")
    surface.focus()
    tile = page.locator("#map [role=option]")
    expect(surface).to_have_attribute("aria-activedescendant", "tile")
    text = "삼성전자, 005930, 201,000, up 0.50%, turnover 600M, 반도체"
    expect(tile).to_have_text(text)
    ring = page.locator("#map .ring.active")
    assert ring.evaluate("(ring) => getComputedStyle(ring).boxShadow") != "none"
    path = []
    for key in ("ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "End", "Home"):
        page.keyboard.press(key)
        path.append(tile.inner_text().split(",")[0])
    assert path[-1] == "삼성전자"
    assert {"SK하이닉스", "네이버"} & set(path)
    assert path[-2].startswith("종목")
    page.keyboard.press("+")
    is_at(board, "#/map/반도체")
    expect(surface).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#detail-title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(surface).to_be_focused()
    is_at(board, "#/map/반도체")
    page.keyboard.press("Escape")
    is_at(board, "#/map")

    # The same as a table: groups, then instruments.
    page.get_by_text("The same as a table").click()
    table = page.locator("#map table")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_have_text(re.compile("반도체.*2.*1.*0.*1.*900M"))
    table.get_by_role("button", name="인터넷").click()
    expect(rows).to_have_text(re.compile("네이버.*10,000.*100M"))
    table.get_by_role("button", name="네이버").click()
    expect(page.locator("#detail-title")).to_have_text("네이버")
    page.keyboard.press("Escape")
    page.locator("#map .crumbs button").click()
    is_at(board, "#/map")
    expect(rows).to_have_count(3)

    # Filters of the table are those of the map, followed at once.
    shown = [
        (page.locator("#glance button", has_text="KOSPI"), {SAMSUNG, HYNIX}),
        (page.locator("#watched"), {SAMSUNG}),
    ]
    for button, isins in shown:
        button.click()
        eventually(lambda isins=isins: set(tiles(board)) == isins)
    for button, _ in shown:
        button.click()
    page.locator("#sector").select_option("인터넷")
    eventually(lambda: set(tiles(board)) == {NAVER})
    page.get_by_role("button", name="No longer 인터넷").click()
    page.locator("#search").fill("ㅅㅅㅈㅈ")
    eventually(lambda: set(tiles(board)) == {SAMSUNG})
    page.locator("#search").fill("nothing of that name")
    expect(page.locator("#empty")).to_have_text("Nothing matches.")
    page.locator("#search").fill("")
    eventually(lambda: len(tiles(board)) == 12)


def test_charts_of_a_watch_list_are_live_and_freed(
    board: Board, client: redis.Redis
) -> None:
    """Candles where there are bars, else lines; nine at once, no others loaded."""
    page = board.page
    bars = BarPublisher(client)
    minutes = [make_bar(minute=n, closed=True) for n in range(3)]
    bars.publish(*minutes)
    bars.publish_movers([minutes[0]])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sent: list[dict[str, Any]] = []
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framesent", lambda frame: sent.append(json.loads(frame))
        ),
    )
    page.evaluate(
        "(isins) => localStorage.setItem('tickthrottle.watch-lists',"
        " JSON.stringify({active: 'Mine', lists: [['Mine', isins], ['None', []]]}))",
        [SAMSUNG, *OTHERS],
    )
    page.goto("about:blank")
    # Names, whose order is that of the charts, come after prices.
    held: list[Route] = []
    names = re.compile("/v1/instruments$")
    page.route(names, lambda route: held.append(route))
    board.open("#/charts")
    is_shown(board, "Charts")
    cells = page.locator("#charts .cell")
    expect(page.locator("#instruments")).to_have_text("12")
    expect(cells).to_have_count(0)
    held.pop().continue_()
    page.unroute(names)
    expect(cells).to_have_count(9)
    expect(page.locator("#charts [role=status]")).to_have_text("1 to 9 of 10")
    samsung = page.locator(f"#charts [data-isin={SAMSUNG}]")
    expect(samsung.get_by_role("slider")).to_have_attribute("aria-valuemax", "3")
    # None of the others has a bar: not even "no bars" is loaded of what is not shown.
    hidden = next(
        isin for isin in OTHERS if page.locator(f"[data-isin={isin}]").count() == 0
    )
    assert not [url for url in asked if hidden in url]
    canvases = page.locator("#charts canvas").count()
    assert canvases >= 9

    # Live, both kinds: a bar, and with lines a window.
    bars.publish(make_bar(minute=3, prices="110 130 100 125"))
    expect(samsung.get_by_role("slider")).to_have_attribute("aria-valuemax", "4")
    drawn = "(cell) => cell.querySelector('.candles').drawn().candles.at(-1).close"
    eventually(lambda: samsung.evaluate(drawn) == 125)
    page.get_by_role("button", name="windows of two seconds").click()
    line = samsung.get_by_role("img")
    expect(line).to_have_attribute("aria-label", re.compile("^Chart of 삼성전자: 2 "))
    publish_trade(board, 1_200, SAMSUNG, "202500", value=700_000_000)
    expect(line).to_have_attribute("aria-label", re.compile("to 202,500"))
    expect(samsung).to_contain_text("202,500")

    page.get_by_role("button", name="Charts after").click()
    expect(cells).to_have_count(1)
    eventually(lambda: [url for url in asked if hidden in url])
    page.get_by_role("button", name="bars of 5 m").click()
    cells.get_by_role("button").click()
    expect(page.locator(".detail")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_have_count(0)

    # Leaving frees them.
    show(board, "Table")
    expect(page.locator("canvas")).to_have_count(0)

    def followed() -> set[str]:
        keys: set[str] = set()
        for message in sent:
            found = {key for key in message.get("keys", []) if key.startswith("bars:")}
            if message["op"] == "subscribe":
                keys |= found
            elif message["op"] == "unsubscribe":
                keys -= found
        return keys

    assert any("bars:" in str(message) for message in sent)
    eventually(lambda: followed() == set())
    show(board, "Charts")
    page.locator("#lists").click()
    page.locator("#list").select_option("None")
    page.keyboard.press("Escape")
    # Where none is starred they are those of the most traded, and hold still.
    expect(page.locator("#charts h2")).to_have_text("Most traded")
    expect(cells).to_have_count(9)
    for isin in (SAMSUNG, HYNIX, NAVER):
        expect(page.locator(f"#charts [data-isin={isin}]")).to_be_visible()
    most = [cell.get_attribute("data-isin") for cell in cells.all()]
    left = next(isin for isin in OTHERS if isin not in most)
    publish_trade(board, 1_300, left, "1001", value=900_000_000)
    publish_trade(board, 1_301, SAMSUNG, "203000", value=800_000_000)
    expect(samsung).to_contain_text("203,000")
    assert [cell.get_attribute("data-isin") for cell in cells.all()] == most


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_for_everyone_at_every_width(board: Board, scheme: str) -> None:
    """No serious finding; neither the page nor a view grows wider than it is."""
    page = board.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for isin in (SAMSUNG, NAVER):
        board.row(isin).get_by_role("button").click()
    show(board, "Map")
    page.get_by_text("The same as a table").click()
    for view, part in (("Map", "#map"), ("Charts", "#charts")):
        show(board, view)
        for width in (360, 1024, 2560):
            board.resize(width)
            board.publisher.publish()
            board.is_in_state("Live")
            page.locator(f"{part} canvas").first.wait_for()
            if view == "Map":
                page.get_by_role("listbox").focus()
            assert grave_findings(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            whole = "(view) => view.scrollWidth <= view.clientWidth"
            assert page.locator(part).evaluate(whole)
