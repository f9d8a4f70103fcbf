"""Candles, the day and movers on the market board, in a real Chromium."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

import pytest
import redis
from playwright.sync_api import expect

from ingest.sources.event import Refusals
from ingest.sources.tape import read_tape
from tests.conftest import TAPES, eventually, leave_out
from tests.e2e.axe import grave_findings
from tests.e2e.board_page import Board
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, BarPublisher, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.bars import Bar

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(240)]

DASH = "\N{EN DASH}"
DRAWN = "document.querySelector('.candles').drawn()"
LENGTHS_MS = {"1 m": MINUTE_MS, "5 m": 5 * MINUTE_MS, "1 h": 60 * MINUTE_MS}
DAY_MS = 86_400_000
SEOUL_MS = 9 * 3_600_000
BAC, IBM = "US0605051046", "US4592001014"
NAMES_OF = {SAMSUNG: "삼성전자", HYNIX: "SK하이닉스"}


@dataclass(frozen=True)
class Execution:
    """A trade, as the oracle reads it."""

    time_ms: int
    seq: int
    price: Decimal
    size: Decimal


def make_tape(count: int, seed: int) -> list[list[Execution]]:
    """Return what comes with each message: a walk, and every so often a late trade."""
    random, price, time_ms = Random(seed), 200_000, FIRST_MS
    batches: list[list[Execution]] = []
    seq = 0
    for _ in range(count):
        batch = []
        for _ in range(random.randint(1, 6)):
            seq += 1
            time_ms += random.randint(500, 40_000)
            price += 100 * random.randint(-9, 9)
            late_ms = random.choice([0, 0, 0, 0, 90_000, 400_000])
            at_ms = max(FIRST_MS, time_ms - late_ms)
            size = Decimal(random.randint(1, 900))
            batch.append(Execution(at_ms, seq, Decimal(price), size))
        batches.append(batch)
    return batches


def read_executions() -> dict[str, list[Execution]]:
    """Return a real tape's first 8,000 trades by instrument, before its opening."""
    path = TAPES / "us_equity_20131007.csv.gz"
    if not path.exists():
        leave_out(f"the tape {path.name}")
    found: dict[str, list[Execution]] = {}
    for one in islice(read_tape(path, Refusals()), 8_000):
        sums = Decimal(one.price), Decimal(one.size)
        execution = Execution(one.time_us // 1_000, one.seq, *sums)
        found.setdefault(one.isin, []).append(execution)
    return found


def in_batches(tape: list[Execution], count: int) -> list[list[Execution]]:
    """Return a tape in the order in which it came: one in fifty, minutes late."""
    random = Random(11)
    late_ms = {one.seq: random.randint(60_000, 900_000) for one in tape[7::50]}
    came = sorted(tape, key=lambda t: (t.time_ms + late_ms.get(t.seq, 0), t.seq))
    size = -(-len(came) // count)
    return [came[at : at + size] for at in range(0, len(came), size)]


def candles(tape: Iterable[Execution], length_ms: int) -> list[dict[str, Any]]:
    """Compute what is to be drawn of a tape; days are those of Seoul."""
    shift_ms = SEOUL_MS if length_ms == DAY_MS else 0
    spans: dict[int, list[Execution]] = {}
    for trade in sorted(tape, key=lambda trade: (trade.time_ms, trade.seq)):
        start_ms = (trade.time_ms + shift_ms) // length_ms * length_ms - shift_ms
        spans.setdefault(start_ms, []).append(trade)
    return [
        {
            "time": start_ms // 1_000,
            "open": float(trades[0].price),
            "high": float(max(trade.price for trade in trades)),
            "low": float(min(trade.price for trade in trades)),
            "close": float(trades[-1].price),
            "volume": float(sum(trade.size for trade in trades)),
        }
        for start_ms, trades in sorted(spans.items())
    ]


class Job:
    """Makes bars of a tape as an analytics job would, and publishes what changes."""

    def __init__(self, bars: BarPublisher) -> None:
        self.bars = bars
        self.tape: list[Execution] = []
        self._known: dict[int, Bar] = {}

    def publish(self, batch: list[Execution]) -> None:
        """Publish a batch; the log's clock is at its newest trade."""
        self.tape += batch
        clock_ms = max(trade.time_ms for trade in self.tape)
        spans: dict[int, list[Execution]] = {}
        for trade in sorted(self.tape, key=lambda trade: (trade.time_ms, trade.seq)):
            spans.setdefault(trade.time_ms // MINUTE_MS, []).append(trade)
        changed = []
        for number, trades in spans.items():
            start_ms = number * MINUTE_MS
            known = self._known.get(start_ms)
            late = len(trades) - known.trades if known and known.closed else 0
            bar = replace(
                bar_of(SAMSUNG, trades, start_ms, start_ms + MINUTE_MS),
                closed=clock_ms >= start_ms + MINUTE_MS,
                revision=(known.revision if known else 0) + late,
            )
            if bar != known:
                changed.append(bar)
                self._known[start_ms] = bar
        self.bars.publish(*changed, clock_ms=clock_ms)


def bar_of(isin: str, trades: list[Execution], start_ms: int, end_ms: int) -> Bar:
    """Return the bar of trades in their order."""
    prices = [trade.price for trade in trades]
    return Bar(
        isin,
        start_ms,
        end_ms,
        prices[0],
        max(prices),
        min(prices),
        prices[-1],
        sum((trade.size for trade in trades), Decimal(0)),
        sum((trade.size * trade.price for trade in trades), Decimal(0)),
        len(trades),
        closed=True,
        revision=0,
    )


def follow_at_every_moment(
    board: Board, job: Job, batches: list[list[Execution]]
) -> None:
    """Publish 22 batches; after each the chart is to draw what the oracle says."""
    for batch in batches[:10]:
        job.publish(batch)
    board.row(SAMSUNG).locator(".price").click()
    at = 10
    for label, length_ms in (*LENGTHS_MS.items(), ("1 d", DAY_MS)):
        choose(board, label)
        for batch in ([], *batches[at : at + 3]):
            if batch:
                job.publish(batch)
            wanted = candles(job.tape, length_ms)
            eventually(lambda wanted=wanted: drawn(board) == wanted)
        at += 3
    assert job.tape == [trade for batch in batches for trade in batch]
    assert any(bar.revision for bar in job._known.values())


def drawn(board: Board) -> list[dict[str, Any]]:
    """Return what the chart draws, candles and volumes as one."""
    shown: dict[str, list[dict[str, Any]]] = board.page.evaluate(DRAWN)
    volumes = {bar["time"]: bar["value"] for bar in shown["volumes"]}
    names = ("time", "open", "high", "low", "close")
    return [
        {name: candle[name] for name in names} | {"volume": volumes[candle["time"]]}
        for candle in shown["candles"]
    ]


def choose(board: Board, label: str) -> None:
    """Press the button of an interval."""
    name = f"bars of {label}"
    board.page.get_by_role("button", name=name, exact=True).click()


def test_candles_are_right_at_every_moment(board: Board, client: redis.Redis) -> None:
    """Equal to those of the tape after every message, amended by late trades."""
    job, page = Job(BarPublisher(client)), board.page
    follow_at_every_moment(board, job, make_tape(22, seed=7))
    # The figures of the newest bar, and the same for who does not see them.
    choose(board, "1 m")
    newest = candles(job.tape, MINUTE_MS)[-1]
    close = f"{newest['close']:,.0f}"
    expect(page.locator(".legend")).to_contain_text(close)
    expect(page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", re_text(close)
    )
    # The day beneath the price.
    (day,) = candles(job.tape, DAY_MS)
    expect(page.locator(".day")).to_contain_text(f"{day['high']:,.0f}")
    expect(page.locator(".day")).to_contain_text(f"{day['volume']:,.0f}")
    value = sum(trade.price * trade.size for trade in job.tape)
    vwap = float(value) / day["volume"]
    expect(page.locator(".day")).to_contain_text(f"VWAP{vwap:,.1f}")


def test_candles_and_movers_of_a_real_tape_are_right(
    board: Board, client: redis.Redis
) -> None:
    """Equal to the oracle at every moment; movers change with the tape."""
    tape, page = read_executions(), board.page
    instruments = {SAMSUNG: tape[BAC], HYNIX: tape[IBM]}
    job = Job(BarPublisher(client))

    def publish_movers(first: float, last: float, sequence: int) -> list[str]:
        """Publish movers of a part of the tape; return what is to be shown."""
        wanted, bars = [], []
        for isin, trades in instruments.items():
            start, end = (int(len(trades) * share) for share in (first, last))
            part = trades[start:end]
            bars.append(bar_of(isin, part, part[0].time_ms, part[-1].time_ms))
            before, after = Fraction(part[0].price), Fraction(part[-1].price)
            rate = float(round((after - before) / before * 100, 4))
            assert rate
            sign = "+" if rate > 0 else "\N{MINUS SIGN}"
            wanted.append(f"{NAMES_OF[isin]} {sign}{abs(rate):.2f}%")
        job.bars.publish_movers(bars, sequence)
        return wanted

    first = publish_movers(0, 0.3, 1)
    page.reload()
    for shown in first:
        expect(page.locator("#movers")).to_contain_text(shown)
    later = publish_movers(0.3, 1, 2)
    follow_at_every_moment(board, job, in_batches(instruments[SAMSUNG], 22))
    for shown in later:
        expect(page.locator("#movers")).to_contain_text(shown, timeout=30_000)


def re_text(close: str) -> Any:
    """Return what finds a close in a sentence."""
    return re.compile(f"close {close}, volume")


def test_a_chart_is_read_by_keys_and_kept(board: Board, client: redis.Redis) -> None:
    """Arrows go from bar to bar; the choice outlives the page; the line stays."""
    bars, page = BarPublisher(client), board.page
    minutes = [
        make_bar(
            minute=n, prices=f"{100 + n} {110 + n} {90 + n} {105 + n}", closed=True
        )
        for n in range(30)
    ]
    bars.publish(*minutes)
    board.row(SAMSUNG).locator(".price").click()
    choose(board, "1 m")
    chart = page.get_by_role("slider", name="Bars of 삼성전자")
    expect(chart).to_have_attribute("aria-valuemax", "30")
    chart.focus()
    for key, place in [
        ("ArrowLeft", 29),
        ("ArrowLeft", 28),
        ("ArrowRight", 29),
        ("PageUp", 19),
        ("Home", 1),
        ("ArrowLeft", 1),
        ("End", 30),
    ]:
        page.keyboard.press(key)
        expect(chart).to_have_attribute("aria-valuenow", str(place))
        expect(page.locator(".legend")).to_contain_text(f"{104 + place}")
    # The instrument stays the one that is open.
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    page.get_by_text("Newest bars as a table").click()
    expect(page.locator(".charts table tbody tr").first).to_contain_text("134")
    page.reload()
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuemax", "30")
    page.get_by_role("button", name="windows of two seconds").click()
    expect(page.get_by_role("slider")).to_have_count(0)
    expect(page.get_by_text("Newest windows as a table")).to_be_visible()


def test_a_minute_without_a_price_is_its_volume(
    board: Board, client: redis.Redis
) -> None:
    """No candle is made up for it; chart, figures and table say what there is."""
    bars, page = BarPublisher(client), board.page
    bars.publish(
        make_bar(prices="100 110 90 105", closed=True),
        make_bar(minute=1, prices="- - - -", closed=True, volume="50"),
        make_bar(minute=2, prices="104 - - 106"),
    )
    board.row(SAMSUNG).locator(".price").click()
    choose(board, "1 m")
    chart = page.get_by_role("slider", name="Bars of 삼성전자")
    expect(chart).to_have_attribute("aria-valuemax", "3")
    drawn = page.evaluate(DRAWN)
    assert [candle["close"] for candle in drawn["candles"]] == [105, 106]
    assert [column["value"] for column in drawn["volumes"]] == [40, 50, 40]
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".legend")).to_contain_text(f"C {DASH}Vol 50")
    expect(chart).to_have_attribute("aria-valuetext", re_text(DASH))
    page.get_by_text("Newest bars as a table").click()
    rows = page.locator(".charts table tbody tr")
    expect(rows.nth(1)).to_contain_text(DASH * 4 + "50")
    expect(page.locator(".day")).to_contain_text("Low90")


def test_movers_change_and_open_an_instrument(
    board: Board, client: redis.Redis
) -> None:
    """What rises comes first; a press opens it with candles."""
    bars, page = BarPublisher(client), board.page
    up, down = make_bar(prices="100 110 100 110"), make_bar(HYNIX, prices="10 10 9 9")
    bars.publish(up, down)
    bars.publish_movers([up, down])
    page.reload()
    movers = page.locator("#movers")
    expect(movers).to_contain_text("삼성전자 +10.00%")
    expect(movers).to_contain_text("SK하이닉스 \N{MINUS SIGN}10.00%")
    bars.publish_movers([down, make_bar(prices="100 120 100 120")], sequence=2)
    expect(movers).to_contain_text("삼성전자 +20.00%", timeout=30_000)
    page.get_by_role("button", name="삼성전자 +20.00%").first.click()
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuemax", "1")


# Of each line of movers and events: which lists are within it, how many entries of each
# are shown, how many texts are cut off (names end in dots), how wide the least name is.
STRIPS = """() => [...document.querySelectorAll(".strip")].map((strip) => {
  const box = strip.getBoundingClientRect();
  const seen = (part) => part.offsetParent !== null;
  const parts = (of, names) => [...of.querySelectorAll(names)].filter(seen);
  const isIn = (part) => {
    const { left, right } = part.getBoundingClientRect();
    return left >= box.left && right <= box.right + 0.5;
  };
  const lists = [...strip.querySelectorAll(".list")];
  const isCut = (part) => part.scrollWidth > part.clientWidth + 1;
  return {
    lists: lists.map((list) => parts(list, "h2, b, time, .title").every(isIn)),
    shown: lists.map((list) => parts(list, "li").length),
    cut: parts(strip, "h2, b, time, p").filter(isCut).length,
    name: Math.min(...parts(strip, ".title").map((part) => part.clientWidth)),
  };
})"""


def test_what_moves_is_told_as_it_happens(board: Board, client: redis.Redis) -> None:
    """Nothing where nobody makes it; then the newest, explained, to open by a press."""
    bars, page = BarPublisher(client), board.page
    bars.publish(make_bar(prices="100 110 100 110"))
    with page.expect_response("**/v1/moves*"):
        page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    expect(page.locator("#events")).to_have_count(0)
    bars.publish_burst(make_bar(HYNIX, prices="100 102 100 101", trades=214))
    bars.publish_move("199400", "205600")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    lists = page.locator("#events .list")
    expect(lists.nth(0)).to_contain_text("BurstsSK하이닉스 214 trades +1.00%")
    expect(lists.nth(1)).to_contain_text("Moves삼성전자 +3.11%")
    move = lists.nth(1).get_by_role("button")
    told = "삼성전자: from 199,400 to 205,600 (+3.11%) in 3.0 s, until"
    assert (move.get_attribute("title") or "").startswith(told)
    assert "214 trades in 60.0 s until" in str(
        lists.nth(0).get_by_role("button").get_attribute("title")
    )
    for word in page.locator(".strip h2, #figures > div").all():
        assert word.get_attribute("title")
    move.click()
    expect(page.locator("#detail-title")).to_have_text("삼성전자")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="한국어").click()
    expect(lists.nth(0)).to_contain_text("체결 급증SK하이닉스 214건 +1.00%")
    expect(lists.nth(1)).to_contain_text("가격 급변")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_candles_are_for_everyone_at_every_width(
    board: Board, client: redis.Redis, scheme: str
) -> None:
    """No serious finding, nothing wider than the page."""
    bars, page = BarPublisher(client), board.page
    page.emulate_media(color_scheme=scheme)
    minutes = [make_bar(minute=n, closed=True) for n in range(5)]
    bars.publish(*minutes)
    bars.publish_movers([minutes[0], make_bar(HYNIX, prices="10 10 9 9")])
    for minute in range(3):
        bars.publish_burst(make_bar(HYNIX, minute, prices="10 10 9 9", trades=2140))
        bars.publish_move(f"19940{minute}", "205600")
    page.reload()
    for width in (360, 1024, 1440, 2560):
        board.resize(width)
        expect(page.locator("#movers")).to_contain_text("+10.00%")
        expect(page.locator("#events")).to_contain_text("2,140 trades")
        expect(page.locator("#events .list")).to_have_count(2)
        for strip in page.evaluate(STRIPS):
            # On a phone each list is as wide as the line, and comes with a swipe.
            assert all(strip["lists"] if width > 360 else strip["lists"][:1]), strip
            assert strip["cut"] == 0
            assert strip["name"] >= 39
        count = {360: 1, 1024: 1, 1440: 2, 2560: 2}[width]
        assert page.evaluate(STRIPS)[1]["shown"] == [count, count]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        board.row(SAMSUNG).locator(".price").click()
        expect(page.get_by_role("slider")).to_have_attribute("aria-valuemax", "5")
        board.publish(**{SAMSUNG: "201000"})
        board.is_in_state("Live")
        assert grave_findings(page) == []
        detail = page.locator(".detail")
        assert detail.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
        page.keyboard.press("Escape")
        # On a wide screen the panel stays.
        expect(detail).to_have_count(1 if width >= 1_920 else 0)


def test_without_an_analytics_job_the_board_is_what_it_was(board: Board) -> None:
    """The line of windows, no movers; whoever asks for candles is told why not."""
    page = board.page
    expect(page.locator("#movers")).to_have_count(0)
    board.row(SAMSUNG).locator(".price").click()
    expect(page.get_by_text("Newest windows as a table")).to_be_visible()
    choose(board, "5 m")
    expect(page.locator(".charts")).to_contain_text("No bars come")
    page.evaluate("localStorage.clear()")
    assert json.loads(page.evaluate("JSON.stringify(localStorage)")) == {}
