"""What an archive says of itself, and when it is behind."""

from dataclasses import replace

import pytest

from archive.contract.archive_state import ArchiveState, decode_archives

STATE = ArchiveState(
    "parquet",
    "host:1:a",
    "k3x9",
    7,
    100_000,
    unknown=("KR7005930003",),
    damaged=("/d/x",),
)


def test_it_comes_back() -> None:
    """Also from a newer archive, which says more."""
    assert ArchiveState.decode(STATE.encode()) == STATE
    more = STATE.encode()[:-1] + b',"further":1}'
    assert decode_archives({b"a": more, b"b": b"rubbish"}) == {"a": STATE}


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"window":"x"}', b"7"])
def test_what_no_archive_says_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        ArchiveState.decode(value)


def test_it_is_behind_at_once_when_it_says_why_it_cannot_store() -> None:
    """As on a full disk; not once it was stopped."""
    full = replace(STATE, problem="No space left on device")
    assert full.is_behind(STATE.window, 2_000)
    assert not replace(full, is_stopped=True).is_behind(STATE.window, 2_000)
    # What cannot be tidied is stored all the same.
    assert not replace(STATE, tidy_problem="x").is_behind(STATE.window, 2_000)


def test_it_is_behind_when_two_flushes_have_passed() -> None:
    """And three windows; one that was stopped, or has just begun, is not."""
    state = replace(STATE, flush_ms=10_000)
    assert not state.is_behind(126_000, 2_000)
    assert state.is_behind(126_001, 2_000)
    assert not replace(state, is_stopped=True).is_behind(10**9, 2_000)
    assert not replace(state, window=0, started_ms=110_000).is_behind(126_001, 2_000)
