"""Market days with all that exchanges say, shown as they went: the whole pipeline.

The tapes are made here, and played by their own clock through Spark, Redis, a gateway
and an archive, to a client, REST and the board in Chromium. Each figure was worked out
by hand.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
import redis
from playwright.sync_api import Page, expect
from pyspark.sql import SparkSession

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.statuses.status_log import StatusLog, StatusOutcome, read_reply
from ingest.statuses.trading_status import TradingStatus
from tests.archive.rig import archiving, settings_of, stored_rows, wait_until_stored
from tests.archive.test_archived_statuses import stored as stored_statuses
from tests.conftest import eventually
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from tests.spark_session import spark_session
from throttle.testing.driver import ThrottleDriver
from tickthrottle_client.blocking_client import BlockingTickClient

pytestmark = [
    pytest.mark.browser,
    pytest.mark.redis,
    pytest.mark.spark,
    pytest.mark.timeout(600),
]

SAMSUNG, APPLE = "KR7005930003", "US0378331005"
WINDOW_MS = 60_000
FIGURES = ("open", "high", "low", "close", "volume", "trades")


class Told(NamedTuple):
    """A status, by the market's clock; the mark that the board has from then on."""

    clock: str
    status: str
    fields: dict[str, str]
    mark: str | None = None


class Sold(NamedTuple):
    """A trade, by the market's clock, and in which session it was made."""

    clock: str
    venue: str
    price: int
    size: int
    session: str


class Day(NamedTuple):
    """What happens on a day, in order, and what comes of it.

    Figures of a key are those of ``FIGURES``; ``lines`` are those of the board's table
    of venues and sessions.
    """

    isin: str
    date: str
    zone: str
    prev_close: str
    settings: dict[str, str]
    events: tuple[Told | Sold, ...]
    figures: dict[str, tuple[int, ...]]
    change: float
    percent: float
    lines: tuple[tuple[str, ...], ...]


KRX = {"venue": "KRX"}
EXAM_DAY = Day(
    SAMSUNG,
    # The day of the university entrance exam: all begins an hour later.
    "2026-11-19",
    "Asia/Seoul",
    "71500",
    {"series": "KRX,NXT,regular", "sessions": "XKRX"},
    (
        Told("07:00:00", "price_bands", {**KRX, "lower": "50100", "upper": "92900"}),
        Sold("08:00:10", "NXT", 71_000, 10, "pre"),
        # Orders of the opening are collected from 09:30 on.
        Told(
            *("09:30:00", "auction", {**KRX, "expected_price": "71800"}),
            "auction 09:30:00",
        ),
        Told(
            *("09:59:50", "auction", {**KRX, "expected_price": "71900"}),
            "auction 09:59:50",
        ),
        Told("10:00:05", "trading", KRX),
        Sold("10:00:05", "KRX", 71_900, 1_200, "regular"),
        Sold("10:20:00", "NXT", 72_400, 30, "regular"),
        Sold("11:00:00", "KRX", 74_000, 100, "regular"),
        Told("11:00:01", "volatility_interruption", KRX, "VI 11:00:01"),
        Told("11:02:10", "trading", KRX),
        Sold("11:02:11", "KRX", 74_500, 80, "regular"),
        # Of the instrument as a whole, at both venues.
        Told("13:00:00", "halted", {"reason": "disclosure"}, "halted 13:00:00"),
        Told("13:30:00", "trading", {}),
        Sold("13:30:05", "KRX", 70_500, 200, "regular"),
        Told(
            *("16:20:00", "auction", {**KRX, "expected_price": "71200"}),
            "auction 16:20:00",
        ),
        # The closing auction comes after the end of the session, within ten minutes.
        Told("16:30:12", "trading", KRX),
        Sold("16:30:12", "KRX", 71_250, 600, "regular"),
        Sold("17:00:00", "NXT", 71_600, 12, "after"),
        Sold("19:59:58", "NXT", 71_400, 3, "after"),
    ),
    {
        # All nine: 10 + 1,200 + 30 + 100 + 80 + 200 + 600 + 12 + 3 = 2,235 shares; the
        # first is NXT's of 08:00, the last NXT's of 19:59.
        "": (71_000, 74_500, 70_500, 71_400, 2_235, 9),
        # Without the first and the last two: 2,235 - 10 - 12 - 3.
        "@regular": (71_900, 74_500, 70_500, 71_250, 2_210, 6),
        # 1,200 + 100 + 80 + 200 + 600.
        "@KRX": (71_900, 74_500, 70_500, 71_250, 2_180, 5),
        # 10 + 30 + 12 + 3.
        "@NXT": (71_000, 72_400, 71_000, 71_400, 55, 4),
    },
    # The regular close, 71,250, against 71,500: -250, and 250 / 71,500 is 0.34965 %.
    -250,
    -0.3497,
    (
        # 250 and 100 below 71,500.
        ("KRX", "71,250", "▼ 250", "0.35%"),
        ("NXT", "71,400", "▼ 100", "0.14%"),
        ("regular session", "71,250", "▼ 250", "0.35%"),
    ),
)
HALF_DAY = Day(
    APPLE,
    # The day after Thanksgiving: it ends at one o'clock.
    "2026-11-27",
    "America/New_York",
    "230",
    {
        "series": "regular,after",
        "sessions": "KR=XKRX,US=XNYS",
        "day_calendars": "Asia/Seoul@00:00,US=America/New_York@00:00",
    },
    (
        Sold("04:10:00", "P", 228, 3, "pre"),
        Told("09:29:59", "price_bands", {"lower": "218.50", "upper": "241.50"}),
        Sold("09:30:00", "Q", 229, 40, "regular"),
        Sold("11:00:00", "Q", 233, 10, "regular"),
        # A pause by limit up, limit down.
        Told("11:00:02", "volatility_interruption", {}, "VI 11:00:02"),
        Told("11:05:02", "trading", {}),
        Sold("12:59:59", "Q", 231, 20, "regular"),
        Sold("13:00:01", "P", 235, 4, "after"),
        Told("13:10:00", "halted", {"reason": "T1"}, "halted 13:10:00"),
        Told("16:30:00", "trading", {}),
        Sold("16:40:00", "P", 234, 1, "after"),
    ),
    {
        # 3 + 40 + 10 + 20 + 4 + 1.
        "": (228, 235, 228, 234, 78, 6),
        # 40 + 10 + 20, until one o'clock.
        "@regular": (229, 233, 229, 231, 70, 3),
        # 4 + 1.
        "@after": (235, 235, 234, 234, 5, 2),
    },
    # 231 against 230: 1, and 1 / 230 is 0.43478 %.
    1,
    0.4348,
    # 4 and 1 above 230.
    (
        ("after-market", "234", "▲ 4", "1.74%"),
        ("regular session", "231", "▲ 1", "0.43%"),
    ),
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One session for both days."""
    with spark_session() as session:
        yield session


@pytest.fixture(params=[EXAM_DAY, HALF_DAY], ids=["Korea", "US half-day"])
def day(request: pytest.FixtureRequest) -> Day:
    """A day."""
    made: Day = request.param
    return made


@pytest.fixture
def visitor(day: Day) -> dict[str, Any]:
    """Somebody who lives where the market is."""
    return {"locale": "en-GB", "timezone_id": day.zone}


def at_ms(day: Day, clock: str) -> int:
    """Return a moment of a day, ms."""
    moment = datetime.fromisoformat(f"{day.date} {clock}")
    return round(moment.replace(tzinfo=ZoneInfo(day.zone)).timestamp() * 1_000)


def test_a_day_is_shown_as_it_went(
    day: Day,
    page: Page,
    spark: SparkSession,
    redis_url: str,
    client: redis.Redis,
    tmp_path: Path,
) -> None:
    """Prices and marks as they come; then the figures, everywhere the same."""
    begin_ms = at_ms(day, "00:00:00")
    entry = InstrumentEntry(day.isin, name="Made", prev_close=day.prev_close)
    told: list[dict[str, Any]] = []
    with (
        ThrottleDriver(
            spark=spark,
            redis_url=redis_url,
            start_ms=begin_ms,
            window_ms=WINDOW_MS,
            window_log=2_000,
            instruments=[entry],
            **day.settings,
        ) as driver,
        running_gateway(redis_url, port=free_port(), heartbeat_ms=500) as gateway,
        BlockingTickClient(
            f"ws://127.0.0.1:{gateway.port}/v1/stream", on_status=told.append
        ) as ticks,
        archiving(settings_of(redis_url, tmp_path)),
    ):
        ticks.subscribe(day.isin, lambda item: None)
        page.goto(f"http://127.0.0.1:{gateway.port}/#/{day.isin}")
        log = StatusLog(client, "tt", driver.partitions)
        statuses = [event for event in day.events if isinstance(event, Told)]
        trades = [event for event in day.events if isinstance(event, Sold)]
        for number, event in enumerate(day.events):
            moment_ms = at_ms(day, event.clock) - begin_ms
            if isinstance(event, Told):
                driver.turn_clock(moment_ms)
                time_us = (begin_ms + moment_ms) * 1_000
                said = {"isin": day.isin, "status": event.status, "time_us": time_us}
                status = TradingStatus(**said, **event.fields)
                outcome, _ = read_reply(log.add(status, time_us))
                assert outcome is StatusOutcome.ADDED
            else:
                extra = {"seq": number, "size": str(event.size), "venue": event.venue}
                driver.trade(day.isin, str(event.price), at_ms=moment_ms, **extra)
                driver.turn_clock(moment_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS)
            check_board(page, day, day.events[: number + 1])
        driver.turn_clock(at_ms(day, "20:02:00") - begin_ms)
        books, windows = driver.ledger(), driver.windows()
        assert books.problems() == []
        check_rest(gateway, day, statuses)
        check_panel(page, day)
        eventually(lambda: len(told) == len(statuses))
        assert [(s["status"], s["missed"]) for s in told] == [
            (status.status, 0) for status in statuses
        ]
        item = ticks.items[day.isin]
        close = day.figures[""][FIGURES.index("close")]
        assert (item["price"], item["session"]) == (close, trades[-1].session)
        wait_until_stored(client, windows[-1].offset)
    check_archive(tmp_path, day, statuses, trades)


def check_board(page: Page, day: Day, events: tuple[Told | Sold, ...]) -> None:
    """Hold the row to what has happened by now."""
    trades = [event for event in events if isinstance(event, Sold)]
    row = page.locator(f"#row-{day.isin}")
    if not trades:
        expect(row.locator(".price")).to_have_count(0)
        return
    expect(row.locator(".price")).to_have_text(f"{trades[-1].price:,}")
    told = [e for e in events if isinstance(e, Told) and e.status != "price_bands"]
    # A status of a venue does not end one of the whole, nor the other way round.
    current = {event.fields.get("venue"): event.mark for event in told}
    marks = [mark for mark in current.values() if mark is not None]
    expect(row.locator(".mark")).to_have_text(marks)


def check_panel(page: Page, day: Day) -> None:
    """Hold the panel to the figures of the day."""
    of_day = page.locator(".detail .day")
    whole = dict(zip(FIGURES, day.figures[""], strict=True))
    for name in ("open", "high", "low", "volume"):
        expect(of_day).to_contain_text(f"{name.capitalize()}{whole[name]:,}")
    lines = page.locator(".detail table.series tbody tr")
    expect(lines).to_have_count(len(day.lines))
    for number, texts in enumerate(day.lines):
        for text in texts:
            expect(lines.nth(number)).to_contain_text(text)
    expect(page.locator(".detail .session")).to_have_text("after-market")


def check_rest(gateway: Gateway, day: Day, statuses: list[Told]) -> None:
    """Hold quotes, a snapshot of the stream and current statuses to the figures."""

    def get(path: str) -> Any:
        status, body = gateway.get(path)
        assert status == 200
        return json.loads(body)

    for behind, figures in day.figures.items():
        quote = get(f"/v1/quotes/{day.isin}{behind}?fields=day")
        assert tuple(quote["day"][name] for name in FIGURES) == figures
    of_whole = get(f"/v1/quotes/{day.isin}?fields=day")["day"]
    assert (of_whole["change"], of_whole["percent"]) == (day.change, day.percent)
    with gateway.stream() as stream:
        stream.say(op="subscribe", keys=[day.isin + behind for behind in day.figures])
        stream.take("ack")
        assert stream.take("statuses")["snapshot"]
        items = stream.take("snapshot")["data"]
    assert len(items) == len(day.figures)
    for item in items:
        figures = day.figures[item["isin"].removeprefix(day.isin)]
        told = {"close": item["price"], **item["day"]}
        assert tuple(told[name] for name in FIGURES) == figures
    newest = {(s.fields.get("venue"), s.status == "price_bands"): s for s in statuses}
    current = {(s.status, at_ms(day, s.clock) * 1_000) for s in newest.values()}
    data = get("/v1/statuses")["data"]
    assert {(one["status"], one["time"]) for one in data} == current


def check_archive(
    folder: Path, day: Day, statuses: list[Told], trades: list[Sold]
) -> None:
    """Hold rows and statuses that are stored to what was worked out."""
    rows = stored_rows(folder)
    for behind, figures in day.figures.items():
        own = [row for row in rows if row["isin"] == day.isin + behind]
        volume = sum((row["volume"] for row in own), Decimal(0))
        highs, lows = zip(*((row["high"], row["low"]) for row in own), strict=True)
        figured = max(highs), min(lows), own[-1]["price"], volume
        assert (*figured, sum(row["trades"] for row in own)) == figures[1:]
    own = [json.loads(r["fields"]) for r in rows if r["isin"] == day.isin]
    # Two trades of one minute are one row.
    minutes = {trade.clock[:5]: trade.session for trade in trades}
    assert [fields["session"] for fields in own] == [*minutes.values()]
    assert [
        (line["status"], round(line["time"].timestamp() * 1_000), line["venue"])
        for line in stored_statuses(folder)
    ] == [(s.status, at_ms(day, s.clock), s.fields.get("venue")) for s in statuses]
