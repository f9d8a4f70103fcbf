"""Statuses in a real Redis: numbered, once, with the trade before them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.redis_keys import StatusKeys
from ingest.statuses import status_log
from ingest.statuses.status_entry import StatusEntry, decode_added, decode_current
from ingest.statuses.status_log import REMEMBERED, StatusLog, StatusOutcome, read_reply
from ingest.statuses.trading_status import TradingStatus
from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from tickthrottle_client.log_v1 import FIELD, stream_key

pytestmark = pytest.mark.redis

SAMSUNG, HYNIX = "KR7005930003", "KR7000660001"
TIME_US = 1_773_964_803_000_000
NOW_US = TIME_US + 5_000
KEYS = StatusKeys("tt")


def make_status(
    after_us: int = 0, status: str = "halted", **more: Any
) -> TradingStatus:
    """Return a status of an instrument, some time after the first."""
    isin = more.pop("isin", SAMSUNG)
    return TradingStatus(isin, status, TIME_US + after_us, **more)


def add(
    client: redis.Redis, *statuses: TradingStatus, partitions: int = 1
) -> list[tuple[StatusOutcome, int]]:
    """Add statuses one after the other."""
    log = StatusLog(client, "tt", partitions)
    return [read_reply(log.add(status, NOW_US)) for status in statuses]


def added(client: redis.Redis) -> list[StatusEntry]:
    """Return what the stream has."""
    entries: Any = client.xrange(KEYS.stream)
    return [decode_added(f, int(i.partition(b"-")[0])) for i, f in entries]


def current(client: redis.Redis) -> list[StatusEntry]:
    """Return what is current."""
    values: Any = client.hvals(KEYS.current)
    return [decode_current(value) for value in values]


def append(client: redis.Redis, *trades: Trade) -> None:
    """Append trades to a log of one partition."""
    for trade in trades:
        client.xadd(stream_key("tt", 0), {FIELD: trade.to_wire()})


def test_each_is_there_once_in_order_and_the_newest_is_current(
    client: redis.Redis,
) -> None:
    halt, late, resumed = (
        make_status(5),
        make_status(1, "auction"),
        make_status(9, "trading"),
    )
    results = add(client, halt, halt, late, resumed, late, halt)
    assert [r for r in results if r[1]] == [(StatusOutcome.ADDED, n) for n in (1, 2, 3)]
    assert [r[0] for r in results if not r[1]] == [StatusOutcome.REPEATED] * 3
    assert [(e.status, e.number) for e in added(client)] == [
        *((halt, 1), (late, 2), (resumed, 3))
    ]
    [newest] = current(client)
    assert (newest.status, newest.number) == (resumed, 3)
    assert newest.text == added(client)[2].text


def test_venues_and_bands_are_current_beside_each_other(client: redis.Redis) -> None:
    bands = make_status(9, "price_bands", lower="1", upper="2")
    statuses = [make_status(), make_status(venue="NXT"), bands, make_status(isin=HYNIX)]
    add(client, *statuses)
    assert {e.status.slot for e in current(client)} == {s.slot for s in statuses}


def test_the_newest_trade_before_goes_with_it(client: redis.Redis) -> None:
    """Not that of another instrument, nor what moves no price."""
    append(
        client,
        Trade(SAMSUNG, TIME_US, 9_007_199_254_740_993, "71900.50", "1"),
        Trade(SAMSUNG, TIME_US + 1, 2, "1", "1", {"updates": "volume"}),
        Trade.from_fields({"isin": SAMSUNG, "time": TIME_US + 2, "cancels": 7}),
        Trade(HYNIX, TIME_US + 3, 4, "5", "1"),
    )
    add(client, make_status(status="auction", expected_price="72000"))
    [entry] = added(client)
    text = entry.text.decode()
    last = f'"last":{{"time":{TIME_US},"seq":9007199254740993,"price":71900.50}}'
    assert last in text
    assert "price" not in entry.bare.decode()
    assert json.loads(entry.bare)["status"] == "auction"
    append(client, Trade(SAMSUNG, TIME_US + 4, 5, "9", "1"))
    assert "71900.50" in current(client)[0].text.decode()


def test_without_a_trade_log_here_there_is_no_trade(client: redis.Redis) -> None:
    append(client, Trade(SAMSUNG, TIME_US, 1, "71900", "1"))
    add(client, make_status(), partitions=0)
    assert b"last" not in added(client)[0].text


def test_the_partition_is_the_instruments(client: redis.Redis) -> None:
    key = stream_key("tt", partition_of(SAMSUNG, 7))
    client.xadd(key, {FIELD: Trade(SAMSUNG, TIME_US, 1, "3", "1").to_wire()})
    add(client, make_status(), partitions=7)
    assert b'"price":3}' in added(client)[0].text


def test_what_is_too_old_to_be_known_is_refused(client: redis.Redis) -> None:
    add(client, *(make_status(n) for n in range(REMEMBERED + 1)))
    assert add(client, make_status(0), make_status(1)) == [
        (StatusOutcome.TOO_OLD, 0),
        (StatusOutcome.REPEATED, 0),
    ]


def test_the_keys_are_bounded(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_log, "MOST_KEPT", 3)
    monkeypatch.setattr(status_log, "MOST_SLOTS", 1)
    add(client, *(make_status(n) for n in range(5)))
    assert [e.number for e in added(client)] == [3, 4, 5]
    assert add(client, make_status(isin=HYNIX)) == [(StatusOutcome.FULL, 0)]
    monkeypatch.setattr(status_log, "KEPT_US", -1)
    add(client, make_status(9))
    assert added(client) == []
    assert current(client)[0].number == 6


def test_a_new_epoch_begins_with_the_number_one(client: redis.Redis) -> None:
    """Where somebody has deleted the old one's meta, nothing old stays."""
    add(client, make_status(), make_status(1))
    before = client.hget(KEYS.meta, "epoch")
    client.delete(KEYS.meta)
    assert add(client, make_status(0, isin=HYNIX)) == [(StatusOutcome.ADDED, 1)]
    assert client.hget(KEYS.meta, "epoch") != before
    assert [e.status.isin for e in current(client)] == [HYNIX]


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["halted", "trading"])),
        max_size=20,
    )
)
def test_any_order_with_repeats_gives_each_once(
    client: redis.Redis, said: Sequence[tuple[int, str]]
) -> None:
    """And the newest by its time is current, of equal times the last that came."""
    client.flushdb()
    statuses = [make_status(after_us, status) for after_us, status in said]
    add(client, *statuses)
    once = list(dict.fromkeys(statuses))
    # Of more than are remembered the oldest may be refused.
    if len(once) <= REMEMBERED:
        assert [e.status for e in added(client)] == once
    assert [e.number for e in added(client)] == [*range(1, len(added(client)) + 1)]
    newest = max(added(client), key=lambda e: e.order, default=None)
    assert [e.number for e in current(client)] == ([newest.number] if newest else [])


def test_a_server_that_was_started_anew_begins_an_epoch(client: redis.Redis) -> None:
    """It may have lost the newest: a number that comes again is not the same one.

    What is current stays, and so do the numbers that are there.
    """
    add(client, make_status(), make_status(1, "trading"))
    [first, _] = (fields[b"epoch"] for _, fields in client.xrange(KEYS.stream))
    assert client.hget(KEYS.meta, "epoch") == first
    assert client.hget(KEYS.meta, "server")
    # As a replica that lacks the last one says it.
    client.xtrim(KEYS.stream, maxlen=1)
    client.hset(KEYS.meta, mapping={"number": 1, "server": "another"})
    client.delete(KEYS.stream)
    add(client, make_status(2, isin=HYNIX), make_status(3, "trading", isin=HYNIX))
    entries: Any = client.xrange(KEYS.stream)
    assert [entry_id for entry_id, _ in entries] == [b"2-0", b"3-0"]
    [epoch] = {fields[b"epoch"] for _, fields in entries}
    assert epoch != first
    assert {entry.status.isin for entry in current(client)} == {SAMSUNG, HYNIX}
