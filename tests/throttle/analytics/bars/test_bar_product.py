"""The log of closed bars: every change once, numbered, bounded. Without Spark."""

import pytest
import redis

from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.analytics.bars import bar_product
from throttle.analytics.product_publisher import BATCHES_KEPT
from throttle.contract.bar_intervals import DayBar
from throttle.contract.products.bar_log import BarLogEntry
from throttle.lease.lease import Fenced

pytestmark = pytest.mark.redis

SECOND_MS = 1_000


def entries(writer: BarWriter) -> list[BarLogEntry]:
    """Return the entries of the bar log, oldest first."""
    found = writer.client.xrange(writer.keys.bar_log)
    return [BarLogEntry.decode(fields) for _, fields in found]


def numbers(writer: BarWriter) -> list[int]:
    """Return their numbers."""
    return [entry.number for entry in entries(writer)]


def end_of(minute: int) -> int:
    """Return the end of a minute."""
    return FIRST_MS + (minute + 1) * MINUTE_MS


def test_what_closes_or_is_amended_is_logged_once(client: redis.Redis) -> None:
    """Not what is open, and no batch that changes nothing closed."""
    writer = BarWriter(client)
    writer.publish(make_bar(), clock_ms=FIRST_MS + SECOND_MS)
    assert entries(writer) == []
    writer.publish(make_bar(HYNIX), clock_ms=end_of(0))
    writer.publish(clock_ms=end_of(0) + SECOND_MS)
    late = make_bar(trades=5, revision=1)
    writer.publish(late, make_bar(minute=1), clock_ms=end_of(0) + 2 * SECOND_MS)
    # Spark calls again for a batch that it does not know to be done.
    writer.repeat(
        *(late, make_bar(minute=1)),
        start_ms=end_of(0) + SECOND_MS,
        clock_ms=end_of(0) + 2 * SECOND_MS,
    )
    first, second = entries(writer)
    assert (first.epoch, first.number, second.number) == ("b7x1", 1, 2)
    assert {(bar.isin, bar.trades) for bar in first.bars()} == {
        (SAMSUNG, 4),
        (HYNIX, 4),
    }
    [amended] = second.bars()
    assert (amended.isin, amended.trades, amended.closed) == (SAMSUNG, 5, True)
    assert second.published_us > first.published_us


def test_the_log_keeps_those_of_the_newest_batches(client: redis.Redis) -> None:
    """However many entries those have; numbers go on."""
    writer = BarWriter(client)
    writer.publish(make_bar(minute=-1), make_bar(minute=0), clock_ms=end_of(0))
    assert numbers(writer) == [1, 2]
    # A batch does not look at those in between: as if they had been published.
    progress = writer.keys.progress("bars")
    client.hincrby(progress, "sequence", BATCHES_KEPT - 2)
    writer.publish(make_bar(minute=1), clock_ms=end_of(1))
    assert numbers(writer) == [1, 2, 3]
    writer.publish(make_bar(minute=2), clock_ms=end_of(2))
    assert numbers(writer) == [3, 4]


def test_a_number_belongs_to_one_entry_for_good(client: redis.Redis) -> None:
    """Whatever else is lost, and whoever comes next."""
    writer = BarWriter(client)
    writer.publish(make_bar(), clock_ms=end_of(0))
    writer.publish(make_bar(minute=1), clock_ms=end_of(1))
    client.delete(writer.keys.bar_log)
    writer.publish(make_bar(minute=2), clock_ms=end_of(2))
    assert numbers(writer) == [3]
    # The sequence begins anew, and with it the ids.
    client.delete(writer.keys.progress("bars"))
    later = BarWriter(client, term=2)
    later.publish(make_bar(minute=3), clock_ms=end_of(3))
    assert numbers(later) == [4]
    with pytest.raises(Fenced):
        writer.publish(make_bar(minute=4), clock_ms=end_of(4))
    assert numbers(later) == [4]


def test_what_is_taken_up_is_logged_if_redis_lacks_it(client: redis.Redis) -> None:
    """After a fail-over to a server that had not got the newest batch."""
    writer = BarWriter(client)
    writer.publish(make_bar(), clock_ms=end_of(0))
    # Another run of the same checkpoint, whose state knows more than Redis.
    later = BarWriter(client, term=2)
    later.held = [make_bar(), make_bar(minute=1)]
    later.batch = 5
    later.clock_ms = end_of(1)
    later.publish(clock_ms=end_of(1) + SECOND_MS)
    assert numbers(later) == [1, 2]
    [taken_up] = entries(later)[1].bars()
    assert taken_up.start_ms == FIRST_MS + MINUTE_MS


def test_a_bar_is_kept_while_a_trade_may_amend_it(client: redis.Redis) -> None:
    """However few are to be kept: one that is gone would count twice in its day."""
    writer = BarWriter(client, bars_kept=2)
    for minute in range(5):
        writer.publish(make_bar(minute=minute), clock_ms=end_of(minute))
    late = make_bar(trades=5, revision=1)
    writer.publish(late, clock_ms=end_of(4) + SECOND_MS)
    day = DayBar.decode(SAMSUNG, client.hget(writer.keys.days, SAMSUNG))
    assert day.bar.trades == 4 * 4 + 5


def test_a_large_state_is_taken_up_in_steps_all_of_it(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Redis was emptied, also if it is away between two steps."""
    monkeypatch.setattr(bar_product, "_BARS", 2)
    writer = BarWriter(client)
    writer.held = [make_bar(minute=minute) for minute in range(5)]
    writer.batch, writer.clock_ms = 5, end_of(4)
    writer.fails_at = 3
    writer.publish(make_bar(minute=5), clock_ms=end_of(5))
    starts = [bar.start_ms for entry in entries(writer) for bar in entry.bars()]
    assert starts == [FIRST_MS + minute * MINUTE_MS for minute in range(6)]
    assert client.zcard(writer.keys.bars(SAMSUNG)) == 6
