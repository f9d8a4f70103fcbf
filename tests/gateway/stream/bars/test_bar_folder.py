"""Longer bars, followed message by message: equal to a fold of all parts, always."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gateway.stream.bars.bar_folder import BarFolder, BarSpan, row_of
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.bar_intervals import DAY, DayBar, fold, span_of, with_bar
from throttle.contract.bars import Bar
from throttle.contract.session_calendar import SessionCalendars

INTERVALS = ("1m", "5m", "15m", "1h", "1d")


class Kept:
    """All bars as they would be kept, and a folder that follows them."""

    def __init__(self) -> None:
        self.bars: dict[tuple[str, int], Bar] = {}
        self.days: dict[str, DayBar] = {}
        self.folder = BarFolder()
        self.told: dict[tuple[str, str, int], bytes] = {}
        self.versions: dict[tuple[str, str, int], int] = {}
        self.reads = 0

    def publish(self, *bars: Bar, clock_ms: int) -> None:
        """Keep some bars, then tell the folder."""
        days = {}
        for bar in bars:
            key = bar.isin, bar.start_ms
            day = with_bar(self.days.get(bar.isin), self.bars.get(key), bar)
            self.bars[key] = bar
            if day is not None and day != self.days.get(bar.isin):
                self.days[bar.isin] = days[bar.isin] = day
        told = tuple(days.values())
        for span in self.folder.missing(bars, told, wants_all):
            self.reads += 1
            self.folder.put(span, self.parts(span))
        for row in self.folder.rows(bars, told, clock_ms, wants_all):
            assert row.version >= self.versions.get(row.id, row.version)
            self.versions[row.id] = row.version
            self.told[row.id] = row.body

    def parts(self, span: BarSpan) -> list[Bar]:
        """Return the bars within a span, oldest first."""
        found = [
            bar
            for (isin, start), bar in self.bars.items()
            if isin == span.isin and span.start_ms <= start < span.end_ms
        ]
        return sorted(found, key=lambda bar: bar.start_ms)

    def oracle(self, interval: str, isin: str, clock_ms: int) -> dict[int, bytes]:
        """Return every bar of an interval, made of all parts there are."""
        parts = sorted(
            (bar for bar in self.bars.values() if bar.isin == isin),
            key=lambda bar: bar.start_ms,
        )
        folded = fold(parts, interval, clock_ms=clock_ms)
        return {bar.start_ms: row_of(interval, bar).body for bar in folded}


def wants_all(interval: str, isin: str) -> bool:
    """Somebody watches everything."""
    return True


CHANGES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from([SAMSUNG, HYNIX]),
            st.integers(0, 130),
            st.integers(1, 500),
        ),
        max_size=4,
    ),
    min_size=1,
    max_size=25,
)


@given(CHANGES)
def test_what_is_told_is_the_fold_of_what_is_kept(
    batches: list[list[tuple[str, int, int]]],
) -> None:
    """Whatever comes late; and no state of a bar goes back."""
    kept, clock_ms = Kept(), FIRST_MS
    for batch in batches:
        changed: dict[tuple[str, int], Bar] = {}
        for isin, minute, price in batch:
            clock_ms = max(clock_ms, FIRST_MS + minute * MINUTE_MS)
            key = isin, FIRST_MS + minute * MINUTE_MS
            known = changed.get(key) or kept.bars.get(key)
            changed[key] = traded(known, isin, minute, price)
        # What has ended is closed with the message in which it ends.
        for key, bar in {**kept.bars, **changed}.items():
            if not bar.closed and bar.end_ms <= clock_ms:
                changed[key] = replace(bar, closed=True)
        kept.publish(*changed.values(), clock_ms=clock_ms)
    for isin in {isin for isin, _ in kept.bars}:
        for interval in INTERVALS:
            told = {
                start: body
                for (name, owner, start), body in kept.told.items()
                if (name, owner) == (interval, isin)
            }
            assert told == kept.oracle(interval, isin, clock_ms)


def traded(known: Bar | None, isin: str, minute: int, price: int) -> Bar:
    """Return a minute after one more trade of one share."""
    value = Decimal(price)
    if known is None:
        flat = f"{price} {price} {price} {price}"
        return make_bar(isin, minute, flat, 1, volume="1", value=str(price))
    return replace(
        known,
        high=max(known.high, value),
        low=min(known.low, value),
        close=value,
        volume=(known.volume or 0) + Decimal(1),
        value=(known.value or 0) + value,
        trades=known.trades + 1,
        revision=known.revision + known.closed,
    )


def test_parts_are_read_once() -> None:
    """An instrument that is followed costs no further question."""
    kept = Kept()
    for minute in range(60):
        kept.publish(make_bar(minute=minute), clock_ms=FIRST_MS + minute * MINUTE_MS)
    assert kept.reads == 3
    late = replace(make_bar(minute=3, trades=9), closed=True, revision=5)
    kept.publish(late, clock_ms=FIRST_MS + 60 * MINUTE_MS)
    # The five and the fifteen minutes that it lies in are not the newest any more.
    assert kept.reads == 5


def test_only_what_is_watched_is_kept() -> None:
    """And what is watched no longer is forgotten with the next message."""
    kept = Kept()
    kept.publish(make_bar(), make_bar(HYNIX), clock_ms=FIRST_MS)
    assert len(kept.folder) == 6

    def wants_one(interval: str, isin: str) -> bool:
        return (interval, isin) == ("5m", SAMSUNG)

    kept.folder.missing([], [], wants_one)
    assert len(kept.folder) == 1


def test_the_calendar_says_when_a_day_begins() -> None:
    """A day that is closed by the next, and an earlier one that is amended."""
    kept = Kept()
    kept.publish(make_bar(minute=0), clock_ms=FIRST_MS)
    start, end = span_of(FIRST_MS, DAY)
    assert b'"closed":false' in kept.told[DAY, SAMSUNG, start]
    kept.publish(clock_ms=end)
    assert b'"closed":true' in kept.told[DAY, SAMSUNG, start]
    kept.publish(make_bar(minute=15 * 60), clock_ms=end)
    assert (DAY, SAMSUNG, end) in kept.told
    late = make_bar(minute=0, trades=5, closed=True, revision=1)
    kept.publish(late, clock_ms=end)
    assert b'"revision":1' in kept.told[DAY, SAMSUNG, start]


def test_a_bar_that_lost_a_trade_is_told_and_so_are_longer_ones() -> None:
    kept = Kept()
    kept.publish(make_bar(minute=0), make_bar(minute=1, prices="1 999 1 2"), clock_ms=1)
    poorer = make_bar(minute=1, trades=3, prices="1 2 1 2", revision=1)
    kept.publish(poorer, clock_ms=2)
    for interval in ("1m", "5m", "1h"):
        expected = kept.oracle(interval, SAMSUNG, 2)
        assert expected
        for start, body in expected.items():
            assert kept.told[interval, SAMSUNG, start] == body


def test_days_are_those_of_the_market_of_an_instrument() -> None:
    """An amended day is folded by the calendar of its instrument."""
    calendars = SessionCalendars.create("Asia/Seoul", "00:00", "US=UTC@00:00")
    folder = BarFolder(calendars=calendars)
    american = replace(make_bar(minute=0), isin="US0378331005")
    for bar in (make_bar(minute=0), american):
        (span,) = (s for s in folder.missing([bar], [], wants_all) if s[0] == DAY)
        calendar = calendars.of(bar.isin)
        assert (span.start_ms, span.end_ms) == calendar.day_of(bar.start_ms)
    assert calendars.everyday.day_of(FIRST_MS) != calendar.day_of(FIRST_MS)
