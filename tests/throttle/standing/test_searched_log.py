"""What looking back finds is the same, whatever was read and kept before."""

import time
from collections.abc import Collection
from typing import NamedTuple

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.examples import many
from tests.throttle.testing.tapes import is_one_server
from throttle.contract.cut import Cut
from throttle.standing.look_back import EntryRules, LookBack
from throttle.standing.searched_log import EVERYTHING, SearchedLog
from throttle.standing.settled import LoggedTrade

pytestmark = pytest.mark.redis
ISINS = ("KR7005930003", "KR7000660001")
NUMBERS = (1, 2, 12)
AHEAD_MS = 10_000
MANY_BYTES = 10**9


class Entry(NamedTuple):
    """An entry of the log, written in the usual form or in another one."""

    isin: str
    seq: int
    takes_back: int | None
    kind: str

    def payload(self, time_us: int) -> bytes:
        """Encode it; ``time_us`` is that of the trade."""
        fields = {"isin": self.isin, "time": time_us, "seq": self.seq}
        if self.kind == "cancel":
            fields = {"isin": self.isin, "time": time_us, "cancels": self.seq}
            return Trade.from_fields(fields).to_wire()
        if self.kind == "other order":
            return (
                f'{{"price": "7", "size":"1", "seq": "{self.seq}", "time":{time_us},'
                f' "isin":"{self.isin}"}}'
            ).encode()
        if self.kind == "escapes":
            digits = "".join(f"\\u003{digit}" for digit in str(self.seq))
            return (
                f'{{"isin":"\\u004b{self.isin[1:]}","time":{time_us},'
                f'"seq":"{digits}","price":"7","size":"1"}}'
            ).encode()
        more = {} if self.takes_back is None else {"corrects": self.takes_back}
        trade = {**fields, "price": "7", "size": "1", **more}
        return Trade.from_fields(trade).to_wire()


entries = st.builds(
    Entry,
    st.sampled_from(ISINS),
    st.sampled_from(NUMBERS),
    st.none() | st.none() | st.sampled_from(NUMBERS),
    st.sampled_from(["usual", "usual", "usual", "cancel", "other order", "escapes"]),
)
looks = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sets(st.sampled_from(ISINS), min_size=1),
        st.just(EVERYTHING) | st.sets(st.sampled_from(NUMBERS), min_size=1),
    ),
    min_size=1,
    max_size=6,
)


def log_of(client: redis.Redis, payloads: list[tuple[str, bytes]]) -> RedisLogReader:
    """Return the reader of a new log with these entries, each at a time of its own."""
    client.flushall()
    info = open_log(client, "tt", 2)
    RedisLogWriter(client, "tt", info, 10**6).append(payloads)
    return RedisLogReader(client, "tt", info)


def found(look: LookBack, numbers: Collection[int]) -> list[LoggedTrade]:
    """Go back as far as there is anything, and return what was found."""
    while look.extend(dict.fromkeys(look.entries, numbers)):
        pass
    every = (one for of_it in look.entries.values() for one in of_it)
    return sorted(every, key=lambda one: one[:3])


def is_wanted(trade: Trade, isins: Collection[str], numbers: Collection[int]) -> bool:
    """Tell whether a trade is of these instruments and has, or names, such a number."""
    is_number = trade.seq in numbers or trade.takes_back in numbers
    return trade.isin in isins and (not numbers or is_number)


@settings(max_examples=many(100), suppress_health_check=is_one_server)
@given(
    entered=st.lists(entries, max_size=60),
    asked=looks,
    most_bytes=st.sampled_from([0, 2_000, MANY_BYTES]),
)
def test_kept_or_not_the_same_is_found(
    client: redis.Redis,
    entered: list[Entry],
    asked: list[tuple[int, set[str], Collection[int]]],
    most_bytes: int,
) -> None:
    """From any cut, of any instruments, all of their trades or some numbers alone."""
    time_us = time.time_ns() // 1_000
    pairs = [
        (one.isin, one.payload(time_us + place)) for place, one in enumerate(entered)
    ]
    reader = log_of(client, pairs)
    now_ms = time.time_ns() // 1_000_000 + 60_000
    tail = reader.tail(now_ms)
    rules = EntryRules(lambda: reader, 2_000, AHEAD_MS, 65_536, "", is_scattered=False)
    kept = rules.searched_log(most_bytes)
    every = {
        p: list(
            zip(chunk.positions.to_pylist(), chunk.payloads.to_pylist(), strict=True)
        )
        for p, chunk in reader.read({p: (-1, tail.positions[p]) for p in (0, 1)})
    }
    for place, isins, numbers in asked:
        before = {p: every.get(p, [])[:place] for p in (0, 1)}
        positions = tuple(some[-1][0] if some else 0 for some in before.values())
        cut = Cut(now_ms, positions, (None, None))
        one, other = (
            found(LookBack(rules, isins, cut, cut, (0, 1), 10**6, log), numbers)
            for log in (kept, None)
        )
        wanted = [
            (p, position)
            for p, logged in before.items()
            for position, payload in logged
            if is_wanted(Trade.from_wire(payload), isins, numbers)
        ]
        assert one == other
        assert sorted(entry[1:3] for entry in one) == wanted


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=9)


@settings(max_examples=many(100), suppress_health_check=is_one_server)
@given(
    entered=st.lists(entries, min_size=30, max_size=30),
    spans=spans,
    most_bytes=st.sampled_from([2_000, MANY_BYTES]),
)
def test_what_lies_between_two_places(
    client: redis.Redis,
    entered: list[Entry],
    spans: list[tuple[int, int]],
    most_bytes: int,
) -> None:
    """In any order, with gaps: each entry once, as if nothing was kept."""
    time_us = time.time_ns() // 1_000
    reader = log_of(client, [(ISINS[0], one.payload(time_us)) for one in entered])
    now_ms = time.time_ns() // 1_000_000 + 60_000
    upto = reader.tail(now_ms).positions
    [p] = (p for p, position in enumerate(upto) if position > 0)
    [(_, chunk)] = reader.read({p: (-1, upto[p])})
    positions = [-1, *chunk.positions.to_pylist()]
    rules = EntryRules(lambda: reader, 2_000, AHEAD_MS, 65_536, "", is_scattered=False)
    log = rules.searched_log(most_bytes)
    wanted = dict.fromkeys(ISINS, EVERYTHING)
    for one, other in spans:
        first, last = sorted((one, other))
        ranges = {p: (positions[first], positions[last])}
        found = [
            entry.position
            for some in log.search(ranges, wanted, now_ms)
            for entry in some.entries
        ]
        assert sorted(found) == positions[first + 1 : last + 1]


def test_what_is_kept_is_not_read_again(client: redis.Redis) -> None:
    """So it takes nothing of the budget; the oldest is forgotten if it is too much."""
    time_us = time.time_ns() // 1_000
    usual = Entry(ISINS[0], 1, None, "usual")
    entries = [(ISINS[0], usual.payload(time_us + n)) for n in range(30_000)]
    reader = log_of(client, entries)
    now_ms = time.time_ns() // 1_000_000 + 60_000
    cut = Cut(now_ms, reader.tail(now_ms).positions, (None, None))
    rules = EntryRules(lambda: reader, 2_000, AHEAD_MS, 65_536, "", is_scattered=False)

    def read(log: SearchedLog) -> float:
        look = LookBack(rules, ISINS[:1], cut, cut, (0, 1), 10**6, log)
        assert found(look, {2}) == []
        return 10**6 - look.left

    size = 60 * len(entries) + sum(len(payload) for _, payload in entries)
    kept, half = (rules.searched_log(most) for most in (2 * size, size // 2))
    assert [read(kept), read(kept)] == [30_000, 0]
    assert read(half) == 30_000
    assert 0 < read(half) < 30_000
    assert len(kept._pieces) == 1
    assert sum(map(len, kept._pieces.values())) <= 6
