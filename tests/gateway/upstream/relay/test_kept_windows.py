"""Windows that are kept for gateways that follow."""

import pytest

from gateway.stream.board import Position
from gateway.upstream.relay import kept_windows
from gateway.upstream.relay.kept_windows import KeptWindows
from tests.gateway.samples import EPOCH, make_row, make_snapshot


def kept_of(*offsets: int, windows: int = 1) -> KeptWindows:
    """Return what keeps windows with these offsets."""
    kept = KeptWindows()
    kept.is_wanted = True
    for offset in offsets:
        kept.follow(make_snapshot(offset, make_row(), windows=windows))
    return kept


def test_nothing_is_kept_before_anybody_follows() -> None:
    """A gateway alone pays nothing."""
    kept = KeptWindows()
    kept.follow(make_snapshot(1))
    assert (kept.next, kept.after(0)) == (0, (0, []))


def test_windows_are_told_from_a_number_on() -> None:
    """Each once, in their order; whoever listens hears of each, and of a restart."""
    kept, heard = kept_of(4, 5), []
    kept.on_news.add(lambda: heard.append(kept.next))
    kept.follow(make_snapshot(6))
    kept.restart(Position())
    assert heard == [3, 3]
    assert [len(kept.after(serial)[1]) for serial in (0, 2, 3)] == [3, 1, 0]


def test_the_oldest_go_when_there_are_too_many_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever had not been told them hears how many; the newest always stays."""
    monkeypatch.setattr(kept_windows, "MOST_BYTES", 10)
    gone, messages = kept_of(1, 2, 3).after(0)
    assert (gone, len(messages)) == (2, 1)


def test_a_span_is_whole_or_it_is_none() -> None:
    """Of one epoch, and one message for each window."""
    kept = kept_of(4, 5, 7)
    assert len(kept.between(EPOCH, 4, 5) or ()) == 2
    assert kept.between(EPOCH, 5, 7) is None
    assert kept.between("other", 4, 5) is None
    assert kept_of(6, windows=2).between(EPOCH, 6, 6) is None
