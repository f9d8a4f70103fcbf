"""What the analytics job keeps of bars, read as it was written."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import redis

from gateway.stream.bars.bar_folder import BarSpan
from gateway.upstream import bar_store
from gateway.upstream.bar_store import BarStore, read_progress
from gateway.upstream.redis_client import create_redis
from ingest.redis_keys import AnalyticsKeys
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, BarPublisher, make_bar
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from throttle.contract.session_calendar import EVERYWHERE, SessionCalendar

PROGRESS = {b"epoch": b"b", b"sequence": b"7"}


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[BarStore]:
    """What reads the bars of the namespace."""
    client = create_redis(redis_url)
    yield BarStore(client, AnalyticsKeys("tt"))
    await client.aclose()


def test_progress_is_read_with_its_calendar() -> None:
    """A job that says nothing of them has minutes, and days of every day."""
    assert read_progress({}) is None
    assert read_progress({b"epoch": b"b"}) is None
    plain = read_progress(PROGRESS)
    assert plain is not None
    assert (plain.position, plain.clock_ms, plain.bars_ms) == (("b", 7), 0, 60_000)
    assert plain.calendars is EVERYWHERE
    named = {b"zone": b"Europe/London", b"begins": b"08:00", b"bars_ms": b"30000"}
    full = read_progress({**PROGRESS, **named, b"clock": b"5"})
    assert full is not None
    assert (full.clock_ms, full.bars_ms) == (5, 30_000)
    assert full.calendars.of("US0378331005") == SessionCalendar(
        "Europe/London", "08:00"
    )
    of_several = {**PROGRESS, **named, b"calendars": b"US=America/New_York@09:30"}
    several = read_progress(of_several)
    assert several is not None
    assert several.calendars.of("US0378331005").zone == "America/New_York"
    assert several.calendars.of(SAMSUNG).zone == "Europe/London"


@pytest.mark.parametrize(
    "fields", [{b"sequence": b"x"}, {b"clock": b"noon"}, {b"bars_ms": b"0"}]
)
def test_progress_that_no_job_would_write_is_refused(
    fields: dict[bytes, bytes],
) -> None:
    """With a sentence."""
    with pytest.raises(ValueError, match="stored"):
        read_progress({**PROGRESS, **fields})


@pytest.mark.redis
async def test_bars_and_days_are_those_that_were_published(
    client: redis.Redis, store: BarStore
) -> None:
    """Of all instruments in the order of ISINs, of some in the order they are named."""
    assert await store.progress() is None
    assert await store.newest() == []
    bars = BarPublisher(client)
    minutes = [make_bar(minute=n, closed=True) for n in range(3)]
    other = make_bar(HYNIX, minute=1)
    bars.publish(*minutes, other)
    progress = await store.progress()
    assert progress is not None
    assert progress.position == (bars.epoch, 1)
    assert await store.newest() == [other, minutes[-1]]
    assert [day.bar.isin for day in await store.days()] == [HYNIX, SAMSUNG]
    assert await store.days([]) == []
    (day,) = await store.days([NAVER, SAMSUNG])
    assert (day.bar.isin, day.bar.trades) == (SAMSUNG, 12)


@pytest.mark.redis
async def test_parts_of_spans_are_within_them(
    client: redis.Redis, store: BarStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is not part of a span; however many are asked for at a time."""
    monkeypatch.setattr(bar_store, "INSTRUMENTS_AT_ONCE", 2)
    minutes = [make_bar(minute=n) for n in range(4)]
    BarPublisher(client).publish(*minutes)

    def span(isin: str, first: int, end: int) -> BarSpan:
        bounds = FIRST_MS + first * MINUTE_MS, FIRST_MS + end * MINUTE_MS
        return BarSpan("5m", isin, *bounds)

    spans = span(SAMSUNG, 0, 2), span(HYNIX, 0, 9), span(SAMSUNG, 3, 9)
    assert await store.parts(spans) == [minutes[:2], [], minutes[3:]]
    assert await store.parts([]) == []


@pytest.mark.redis
async def test_a_question_reads_no_more_than_it_may(
    client: redis.Redis, store: BarStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer bars come then, and none that lacks one of its parts."""
    BarPublisher(client).publish(
        *(make_bar(minute=n) for n in range(20)), clock_ms=FIRST_MS
    )
    progress = await store.progress()
    assert progress is not None
    monkeypatch.setattr(bar_store, "MOST_READ", 12)
    fives = await store.last(SAMSUNG, "5m", 4, progress)
    starts = [datetime.fromtimestamp(bar.start_ms / 1_000, UTC) for bar in fives]
    assert [start.minute for start in starts] == [10, 15]
    assert {bar.trades for bar in fives} == {20}
