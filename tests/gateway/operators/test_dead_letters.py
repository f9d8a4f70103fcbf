"""Dead letters from many streams, without reading more than are wanted."""

from typing import Any

import pytest
import redis
from redis.asyncio import Redis

from gateway.operators import dead_letters
from gateway.operators.dead_letters import Stack, newest, read_letters
from gateway.operators.operators_schemas import LettersAnswer
from tests.throttle.publishing import KEYS, Job
from throttle.contract.dead_letter import KEPT_BYTES


def entry(at_ms: int, reason: str = "empty", **more: bytes) -> Any:
    """Make an entry of a dead-letter stream."""
    fields = {b"reason": reason.encode(), b"error": b"", b"trade": b""}
    further = {name.encode(): value for name, value in more.items()}
    return b"%d-0" % at_ms, {**fields, **further}


def make_stack(reason: str | None = None, **more: Any) -> Stack:
    """Make a stack of one partition."""
    return Stack("job", 0, "tt:dead:job:0", more.get("log", "redis"), reason)


def test_a_stack_is_taken_from_the_newest_on() -> None:
    """It goes on below what it has seen, and ends where there is less than asked."""
    stack = make_stack()
    stack.take([entry(9), entry(8)], asked=2)
    assert (stack.below, stack.is_finished) == ("(8-0", False)
    stack.take([entry(7)], asked=2)
    assert (stack.scanned, stack.is_finished) == (3, True)
    assert [letter.appended_ms for letter in newest([stack], 2)] == [9, 8]
    stack.take([], asked=2)
    assert stack.below == "(7-0"


def test_a_stack_is_read_on_only_for_what_may_be_wanted() -> None:
    """Not when all below is older than what was found elsewhere."""
    stack = make_stack("empty")
    assert stack.may_be_wanted(2, 100)
    stack.take([entry(50), entry(40, "bad_isin")], asked=2)
    assert len(stack.letters) == 1
    assert stack.may_be_wanted(2, None)
    assert stack.may_be_wanted(2, 40)
    assert not stack.may_be_wanted(2, 41)
    assert not stack.may_be_wanted(1, None)
    stack.take([], asked=2)
    assert not stack.may_be_wanted(2, None)


def test_a_letter_of_a_topic_stands_for_an_offset() -> None:
    """And tells itself when the trade was appended."""
    stack = make_stack(log="kafka")
    stack.take([(b"41-1", entry(0, appended=b"77")[1])], asked=9)
    [letter] = stack.letters
    assert (letter.position, letter.appended_ms) == ("41", 77)


def test_of_a_long_trade_length_and_digest_are_told() -> None:
    """Its beginning was kept; earlier versions kept all, and the beginning is shown."""
    stack = make_stack()
    more = {"bytes": b"70000", "sha256": b"ab"}
    old, new = entry(1, trade=b"x" * 20_000), entry(2, trade=b"x" * KEPT_BYTES, **more)
    stack.take([new, old, entry(3, trade=b"x", bytes=b"1", sha256=b"")], asked=9)
    assert [(len(o.trade), o.bytes, o.sha256) for o in stack.letters] == [
        (KEPT_BYTES, 70_000, "ab"),
        (KEPT_BYTES, 20_000, None),
        (1, 1, None),
    ]


@pytest.mark.redis
async def test_no_more_is_looked_at_than_allowed(
    client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare reason is looked for so far, and the answer says how far."""
    Job(client, partitions=2)
    for at_ms in range(1, 31):
        for partition in (0, 1):
            key = f"{KEYS.dead('job')}:{partition}"
            is_rare = at_ms == 5
            reason = b"bad_isin" if is_rare else b"empty"
            client.xadd(key, {b"reason": reason}, id=f"{at_ms}-0")

    async def read(limit: int, reason: str | None) -> LettersAnswer:
        async with Redis.from_url(redis_url) as asker:
            found = await read_letters(asker, KEYS, limit, reason, None)
            assert found is not None
            return found

    monkeypatch.setattr(dead_letters, "PIECE", 8)
    whole = await read(3, "bad_isin")
    assert ([one.appended_ms for one in whole.data], whole.is_complete) == (
        [5, 5],
        True,
    )
    assert whole.scanned == 60
    some = await read(3, None)
    assert [one.appended_ms for one in some.data] == [30, 30, 29]
    assert (some.scanned, some.is_complete) == (6, True)
    monkeypatch.setattr(dead_letters, "MOST_SCANNED", 20)
    cut = await read(3, "bad_isin")
    assert (cut.count, cut.scanned, cut.is_complete) == (0, 24, False)
