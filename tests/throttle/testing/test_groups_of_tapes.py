"""Rows, markets and sectors of real tapes: each add up to what was traded."""

import csv
import gzip
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from ingest.instrument_table.instrument_entry import InstrumentEntry
from tests.oracle import add_up
from tests.paths import ROOT
from tests.published import item_of
from throttle.contract.group import GROUP
from throttle.testing.driver import PublishedWindow, ThrottleDriver

DATA = ROOT.parent / "shared" / "data"
TAPES = sorted(path.name for path in (DATA / "tapes").glob("*.csv.gz"))
INSTRUMENTS = DATA / "krx" / "issues_2026-03-20.csv"
MOST_TRADES, MOST_MS = 12_000, 400_000

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(
        not TAPES, reason="the recorded tapes are not beside the project"
    ),
]


def trades_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield the first trades of a tape."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, trade in enumerate(csv.DictReader(lines)):
            if number == MOST_TRADES:
                return
            yield trade


def master_rows() -> list[dict[str, str]]:
    """Return rows of the Korean instrument list, one a line."""
    with INSTRUMENTS.open(encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


def sums(window: PublishedWindow, kind: str) -> tuple[int, int, int, Decimal, Decimal]:
    """Return a kind's sums: instruments, judged ones, trades, volume and value."""
    found = [
        group
        for key, group in window.groups.items()
        if key.startswith(f"{GROUP}{kind}:")
    ]
    judged = ("advancing", "declining", "unchanged", "unpriced")
    return (
        sum(int(group["instruments"]) for group in found),
        sum(int(group[name]) for group in found for name in judged),
        sum(int(group["trades"]) for group in found),
        sum((Decimal(group["volume"]) for group in found), Decimal(0)),
        sum((Decimal(group["value"]) for group in found), Decimal(0)),
    )


@pytest.mark.parametrize("name", TAPES)
def test_sectors_and_markets_add_up_to_every_window(name: str, redis_url: str) -> None:
    """Whatever a tape brings; every seventh instrument is not in the table."""
    trades = list(trades_of(DATA / "tapes" / name))
    isins = sorted({trade["isin"] for trade in trades})
    entries = [
        InstrumentEntry(
            isin,
            name=row["name"],
            market=row["market"] or None,
            sector=row["industry"] or None,
            prev_close=row["prev_close"] if number % 5 else None,
        )
        for number, (isin, row) in enumerate(zip(isins, master_rows(), strict=False))
        if number % 7
    ]
    first_ms = int(trades[0]["time"]) // 1_000
    traded: dict[int, tuple[int, Decimal, Decimal]] = {}
    with ThrottleDriver(redis_url=redis_url, instruments=entries) as driver:
        last_ms = 0
        for trade in trades:
            at_ms = max(last_ms, int(trade["time"]) // 1_000 - first_ms)
            if at_ms >= MOST_MS:
                break
            last_ms = at_ms
            driver.trade(
                trade["isin"],
                trade["price"],
                at_ms=at_ms,
                seq=int(trade["seq"]),
                size=trade["size"],
            )
            end_ms = at_ms - at_ms % 2_000 + 2_000
            count, volume, value = traded.get(end_ms, (0, Decimal(0), Decimal(0)))
            size = Decimal(trade["size"])
            traded[end_ms] = (
                count + 1,
                volume + size,
                value + size * Decimal(trade["price"]),
            )
        driver.turn_clock(last_ms + 4_000)
        windows = driver.windows()
    assert len(windows) > 10
    for window in windows:
        of_markets = sums(window, "market")
        assert of_markets == sums(window, "sector")
        assert of_markets[0] == of_markets[1] == len(window.rows)
        nothing = 0, Decimal(0), Decimal(0)
        of_rows = add_up(("", item_of(row).sums) for row in window.rows.values())
        assert of_markets[2:] == of_rows.get("", nothing)[:3]
        assert of_markets[2:] == traded.get(window.end_ms, nothing)
