"""Where the log ends, as Redis tells it."""

from typing import Any

import pytest
from redis.exceptions import ResponseError

from gateway.health.log_ends import (
    LogEnds,
    PartitionEnd,
    decode_redis_ends,
    log_kind,
)
from ingest.tradelog.contract import LogInfo

INFO = LogInfo("x", 2, 0)


def reply(**more: Any) -> dict[str, Any]:
    """Make an answer to XINFO STREAM."""
    return {
        "entries-added": 7,
        "length": 2,
        "last-generated-id": b"1000-1",
        "first-entry": (b"999-0", {}),
        **more,
    }


def test_the_ends_of_a_log_in_redis() -> None:
    """A partition that nobody has appended to is empty, not unknown."""
    missing = ResponseError("no such key")
    ends = decode_redis_ends(INFO, [reply(), missing])
    assert ends.of(0) == PartitionEnd(1000 << 21 | 1, 1000, 7, 2, 999 << 21)
    assert ends.of(1) == PartitionEnd(None, None, 0, 0)
    assert ends.last_append_ms == 1000


def test_a_stream_that_was_trimmed_to_nothing_still_has_an_end() -> None:
    """One that was made and never filled has none."""
    trimmed = reply(length=0, **{"first-entry": None})
    made = reply(**{"entries-added": 0, "length": 0, "last-generated-id": b"0-0"})
    ends = decode_redis_ends(INFO, [trimmed, made])
    assert ends.of(0) == PartitionEnd(1000 << 21 | 1, 1000, 7, 0, None)
    assert ends.of(1) == PartitionEnd(None, None, 0, 0)


def test_any_other_answer_is_raised() -> None:
    """A key of another type is nobody's log."""
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        decode_redis_ends(INFO, [ResponseError("WRONGTYPE")])


def test_nothing_is_known_of_a_log_that_cannot_be_asked() -> None:
    """Neither when it grew last nor where it ends."""
    ends = LogEnds("kafka", problem="away")
    assert (ends.last_append_ms, ends.of(0)) == (None, None)


def test_the_id_of_a_log_says_what_it_is_kept_in() -> None:
    """A topic's begins with it."""
    assert [log_kind("kafka:abc"), log_kind("abc")] == ["kafka", "redis"]
