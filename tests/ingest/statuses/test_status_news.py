"""What a feed has heard of statuses: news once, in order, within bounds."""

from dataclasses import replace

import pytest

from ingest.statuses import status_news
from ingest.statuses.status_news import StatusNews
from ingest.statuses.trading_status import TradingStatus

HALT = TradingStatus("KR7005930003", "halted", 1_773_964_803_000_000)


def told(news: StatusNews) -> list[TradingStatus]:
    """Tell all that is not told."""
    statuses = []
    while (status := news.wait(0)) is not None:
        statuses.append(status)
        news.told(status)
    return statuses


def test_what_is_said_again_is_no_news_until_it_changes() -> None:
    news = StatusNews()
    later = replace(HALT, time_us=HALT.time_us + 1)
    of_venue = replace(HALT, venue="NXT")
    bands = replace(HALT, status="price_bands", lower="1")
    resumed = replace(later, status="trading")
    for status in (HALT, later, of_venue, bands, resumed, HALT):
        news.note(status)
    # The same second: what came last is newer.
    again = replace(HALT, time_us=resumed.time_us + 1)
    assert told(news) == [HALT, of_venue, bands, resumed, again]
    long_before = replace(resumed, time_us=HALT.time_us - 5_000_000)
    news.note(long_before)
    assert told(news) == [long_before]


def test_what_redis_did_not_take_is_the_next_one_again() -> None:
    news = StatusNews()
    news.note(HALT)
    assert news.wait(0) is news.wait(0) is HALT


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_news, "MOST_UNTOLD", 2)
    news = StatusNews()
    at_us = [HALT.time_us + n * 1_000_000 for n in range(3)]
    statuses = [replace(HALT, time_us=us, reason=f"r{us}") for us in at_us]
    for status in statuses[:2]:
        news.note(status)
    oldest = news.wait(0)
    assert oldest is not None
    news.note(statuses[2])
    news.told(oldest)
    assert (told(news), news.left_out) == (statuses[1:], 1)
