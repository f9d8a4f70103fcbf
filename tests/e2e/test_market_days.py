"""Whole days of markets, worked out by hand: on REST, the stream and in the archive.

A Korean day over two venues with an hour before and four hours after the regular
session, and an American half-day.
"""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from tests.archive.rig import archiving, settings_of, stored_rows, wait_until_stored
from tests.gateway.servers import Gateway, running_gateway
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis

SAMSUNG, APPLE = "KR7005930003", "US0378331005"
WINDOW_MS = 60_000
FIGURES = ("open", "high", "low", "close", "volume", "trades")


class Day(NamedTuple):
    """Trades of a day, by the market's clock, and what comes of them by hand.

    A trade is a time, a venue, a price and a size; the figures of a key are those of
    ``FIGURES``.
    """

    isin: str
    date: str
    zone: str
    code: str
    prev_close: str
    settings: dict[str, str]
    trades: tuple[tuple[str, str, int, int], ...]
    sessions: tuple[str, ...]
    figures: dict[str, tuple[int, ...]]
    change: float
    percent: float
    last_session: str


KOREA = Day(
    SAMSUNG,
    "2026-11-27",
    "Asia/Seoul",
    "005930",
    "71500",
    {"series": "KRX,NXT,regular", "sessions": "XKRX"},
    (
        ("08:00:10", "NXT", 71_000, 10),
        ("08:49:59", "NXT", 71_400, 5),
        ("09:00:05", "KRX", 71_200, 100),
        ("09:00:40", "NXT", 71_300, 20),
        ("10:15:00", "KRX", 72_500, 50),
        ("13:00:00", "NXT", 70_900, 30),
        ("15:19:59", "KRX", 71_900, 10),
        # The closing auction.
        ("15:30:12", "KRX", 72_000, 500),
        ("15:45:00", "NXT", 72_300, 5),
        ("17:00:00", "KRX", 72_800, 8),
        ("19:59:00", "NXT", 72_600, 2),
    ),
    ("pre", "pre", *(["regular"] * 6), "after", "after", "after"),
    {
        "": (71_000, 72_800, 70_900, 72_600, 740, 11),
        "@regular": (71_200, 72_500, 70_900, 72_000, 710, 6),
        "@KRX": (71_200, 72_800, 71_200, 72_800, 668, 5),
        "@NXT": (71_000, 72_600, 70_900, 72_600, 72, 6),
    },
    500,
    0.6993,
    "after",
)
HALF_DAY = Day(
    APPLE,
    # The day after Thanksgiving: it ends at one o'clock.
    "2026-11-27",
    "America/New_York",
    "AAPL",
    "230",
    {
        "series": "regular,after",
        "sessions": "KR=XKRX,US=XNYS",
        "day_calendars": "Asia/Seoul@00:00,US=America/New_York@00:00",
    },
    (
        ("04:10:00", "P", 228, 3),
        ("09:30:00", "Q", 229, 40),
        ("11:00:00", "Q", 233, 10),
        ("12:59:59", "Q", 231, 20),
        ("13:00:01", "P", 235, 4),
        ("16:40:00", "P", 234, 1),
    ),
    ("pre", "regular", "regular", "regular", "after", "after"),
    {
        "": (228, 235, 228, 234, 78, 6),
        "@regular": (229, 233, 229, 231, 70, 3),
        "@after": (235, 235, 234, 234, 5, 2),
    },
    1,
    0.4348,
    "after",
)


def at_ms(day: Day, clock: str) -> int:
    """Return a moment of a day, ms."""
    moment = datetime.fromisoformat(f"{day.date} {clock}")
    return round(moment.replace(tzinfo=ZoneInfo(day.zone)).timestamp() * 1_000)


def quote(gateway: Gateway, key: str, fields: str) -> Any:
    """Return a quote with further fields."""
    status, body = gateway.get(f"/v1/quotes/{key}?fields={fields}")
    assert status == 200
    return json.loads(body)


@pytest.mark.parametrize("day", [KOREA, HALF_DAY], ids=["Korea", "half-day"])
def test_a_day_is_what_was_worked_out_by_hand(
    day: Day, redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    """Open, high, low, close, volume and change, of the whole and of its parts."""
    begin_ms = at_ms(day, "00:00:00")
    entry = InstrumentEntry(day.isin, code=day.code, prev_close=day.prev_close)
    with ThrottleDriver(
        redis_url=redis_url,
        start_ms=begin_ms,
        window_ms=WINDOW_MS,
        window_log=2_000,
        instruments=[entry],
        **day.settings,
    ) as driver:
        for number, (clock, venue, price, size) in enumerate(day.trades):
            moment_ms = at_ms(day, clock) - begin_ms
            driver.trade(
                day.isin,
                str(price),
                at_ms=moment_ms,
                seq=number,
                size=str(size),
                venue=venue,
            )
            driver.turn_clock(moment_ms)
        driver.turn_clock(at_ms(day, "20:02:00") - begin_ms)
        books = driver.ledger()
        windows = driver.windows()
    assert books.problems() == []
    of_series = sum(figures[-1] for key, figures in day.figures.items() if key)
    assert books.total.extra == of_series
    told = [
        json.loads(window.rows[day.isin].body)["session"]
        for window in windows
        if day.isin in window.rows
    ]
    # Two trades of one minute are one row.
    rows = [clock[:5] for clock, *_ in day.trades]
    due = [
        day.sessions[n] for n, minute in enumerate(rows) if minute not in rows[n + 1 :]
    ]
    assert told == due
    with (
        running_gateway(redis_url) as gateway,
        archiving(settings_of(redis_url, tmp_path)),
    ):
        gateway.wait_for("reloads")
        for behind, figures in day.figures.items():
            found = quote(gateway, day.isin + behind, "day")["day"]
            assert tuple(found[name] for name in FIGURES) == figures
        whole = quote(gateway, day.code, "day,series")
        assert whole["session"] == day.last_session
        regular = dict(zip(FIGURES, day.figures["@regular"], strict=True))
        assert regular.items() <= whole["day"]["regular"].items()
        assert whole["day"]["change"] == day.change
        assert whole["day"]["percent"] == day.percent
        assert [f"@{name}" for name in whole["series"]] == sorted(
            behind for behind in day.figures if behind
        )
        with gateway.stream() as stream:
            items = stream.subscribe(*(day.isin + behind for behind in day.figures))
        for item in items:
            figures = day.figures[item["isin"].removeprefix(day.isin)]
            of_day = {"close": item["price"], **item["day"]}
            assert tuple(of_day[name] for name in FIGURES) == figures
        wait_until_stored(client, windows[-1].offset)
        for behind, figures in day.figures.items():
            stored = [
                row for row in stored_rows(tmp_path) if row["isin"] == day.isin + behind
            ]
            volume = sum((row["volume"] or row["size"] for row in stored), Decimal(0))
            assert (volume, stored[-1]["price"]) == (figures[4], figures[3])
            assert max(row["high"] or row["price"] for row in stored) == figures[1]
