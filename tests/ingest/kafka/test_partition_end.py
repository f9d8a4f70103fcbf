"""What waits at the end of a partition, since when; and stamps that say nothing."""

from ingest.kafka.partition_end import AHEAD_MS, BEHIND_MS, KafkaEnd, look_at

NOW_MS = 1_795_600_000_000


def test_what_waits_is_told_since_it_was_seen_first() -> None:
    """Another transaction than before has not waited yet."""
    first = look_at(None, 22, 26, NOW_MS, NOW_MS)
    assert first == KafkaEnd(21, NOW_MS, waiting=4, waits_since_ms=NOW_MS)
    same = look_at(first, 22, 30, NOW_MS, NOW_MS + 9_000)
    assert (same.waiting, same.waits_since_ms) == (8, NOW_MS)
    other = look_at(same, 28, 30, NOW_MS, NOW_MS + 10_000)
    assert (other.waiting, other.waits_since_ms) == (2, NOW_MS + 10_000)
    done = look_at(other, 30, 30, NOW_MS, NOW_MS + 11_000)
    assert (done.waiting, done.waits_since_ms) == (0, None)


def test_a_partition_of_nothing_has_no_stamp() -> None:
    """Nor is anything off."""
    assert look_at(None, 0, 0, -1, NOW_MS) == KafkaEnd(-1, None)


def test_a_stamp_ahead_of_the_clock_is_off() -> None:
    """At any time, for no append is in the future."""
    for ahead_ms, off_ms in ((AHEAD_MS, 0), (AHEAD_MS + 1, AHEAD_MS + 1)):
        end = look_at(None, 1, 1, NOW_MS + ahead_ms, NOW_MS)
        assert end.stamp_off_ms == off_ms


def test_an_old_stamp_is_off_once_something_has_come_with_it() -> None:
    """A quiet topic has old stamps, too; one that grows has not."""
    old_ms = NOW_MS - 3_600_000
    before = look_at(None, 5, 5, old_ms, NOW_MS)
    assert before.stamp_off_ms == 0
    assert look_at(before, 5, 5, old_ms, NOW_MS + 5_000).stamp_off_ms == 0
    grown = look_at(before, 6, 6, old_ms, NOW_MS + 5_000)
    assert grown.stamp_off_ms == -3_605_000
    # It stays so until something comes that is stamped well.
    quiet = look_at(grown, 6, 6, old_ms, NOW_MS + 10_000)
    assert quiet.stamp_off_ms == -3_605_000
    well = look_at(quiet, 7, 7, NOW_MS + 15_000 - BEHIND_MS, NOW_MS + 15_000)
    assert well.stamp_off_ms == 0
