"""Input as it should not be: none any more, years ahead, hours behind, or too much."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import redis

from ingest.sources.event import Refusals
from ingest.sources.tape import read_tape
from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from tests.conftest import PATIENCE, eventually
from tests.e2e.books import check_books, read_account, valid_entries
from tests.e2e.feeds import find_tape
from tests.e2e.rig import KEYS, Rig, create_rig
from tests.e2e.steady import Steady
from tests.published import read_snapshots, without_days
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500
# A stall is meant, not speed: the machine may be busy.
ON_TIME_MS = 5_000 * PATIENCE
HOUR_US = 3_600_000_000
YEAR_2099_US = 4_070_908_800_000_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steady]:
    """One job for the file, not started yet."""
    with create_rig(tmp_path_factory.mktemp("inputs"), W) as rig, Steady(rig) as steady:
        yield steady


@pytest.fixture
def steady(shared: Steady) -> Steady:
    """The job, live, without a feed."""
    shared.begin()
    return shared


@pytest.fixture
def trades(tmp_path: Path) -> list[Trade]:
    """A trade each of some twenty instruments."""
    first = islice(read_tape(find_tape(tmp_path), Refusals()), 2_000)
    return list({trade.isin: trade for trade in first}.values())[:20]


def test_a_backlog_is_kept_window_by_window_and_sent_conflated(
    shared: Steady, tmp_path: Path
) -> None:
    """Calm, exactly once: every window is logged, one message sent for each batch."""
    rig, windows = shared.rig, 200
    _append_past(rig, find_tape(tmp_path), windows)
    with rig.client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(KEYS.updates)
        shared.begin()
        assert rig.check().windows >= windows
        messages = _drain(channel)
    log = {one.offset: one for one in read_snapshots(rig.client)}
    account = read_account(rig.client)
    assert account is not None
    batches = {batch.offset: batch.windows for batch in account.batches}
    assert all(batches[message.offset] == message.windows for message in messages)
    assert [message.offset for message in messages] == list(batches)[: len(messages)]
    assert max(batches.values()) == 30
    for message in messages:
        covered = range(message.offset - message.windows + 1, message.offset + 1)
        assert _rows(message) == _merged([log[offset] for offset in covered])


def test_a_dead_partition_holds_up_nothing(steady: Steady) -> None:
    """Prompt: the others' windows close on time, and complete."""
    rig = steady.rig
    before = [rig.client.xlen(f"tt:log:{p}") for p in (1, 2)]
    with rig.feed(without_partition=2):
        rig.wait_for_offset(rig.offset() + 10, 30, steady.job)
        assert _median(steady.lags_ms(5)) < ON_TIME_MS
    after = [rig.client.xlen(f"tt:log:{p}") for p in (1, 2)]
    assert after[0] > before[0]
    assert after[1] == before[1]
    steady.check_goes_on()


def test_silence_after_trades_closes_empty_windows_on_time(steady: Steady) -> None:
    """Prompt: when a feed stops, the clock closes the windows."""
    rig = steady.rig
    with rig.feed():
        rig.wait_for_offset(rig.offset() + 4, 30, steady.job)
    rig.wait_until_live(steady.job)
    # A busy machine may have some of the trades before it still.
    eventually(lambda: not any(s.rows for s in read_snapshots(rig.client)[-5:]), 30)
    rig.wait_for_offset(rig.offset() + 3, 30, steady.job)
    assert _median(steady.lags_ms(5)) < ON_TIME_MS
    steady.check_goes_on()


def test_an_exchange_clock_that_jumps_never_sends_an_instrument_back(
    steady: Steady, trades: list[Trade]
) -> None:
    """Latest, never backwards: an hour back is stale, 2099 refused."""
    rig = steady.rig
    rig.wait_for_offset(1, 20, steady.job)
    before = check_books(rig.client).total
    now_us = time.time_ns() // 1_000
    stamps = [now_us, now_us - HOUR_US, YEAR_2099_US, now_us - HOUR_US + 1, now_us + 1]
    for stamp_us in stamps:
        for trade in trades:
            _append(rig.client, trade, stamp_us)
        # Each jump in a window of its own, also where the job is behind.
        end_ms = (rig.clock_ms() // W + 1) * W
        eventually(lambda end_ms=end_ms: _published_ms(rig.client) >= end_ms, 60)
    steady.check_goes_on()
    after = check_books(rig.client).total
    assert after.refused["future_time"] == len(trades)
    assert after.stale - before.stale == 2 * len(trades)
    assert after.published - before.published == 2 * len(trades)
    _check_never_back(rig.client)
    _check_last_values(rig.client)


def _published_ms(client: redis.Redis) -> int:
    """Return the end of the newest window that is published."""
    return int(client.hget(KEYS.meta, "window") or 0)


def _append(client: redis.Redis, trade: Trade, time_us: int) -> None:
    stamped = Trade(trade.isin, time_us, trade.seq, trade.price, trade.size)
    partition = partition_of(trade.isin, 4)
    client.xadd(f"tt:log:{partition}", {"trade": stamped.to_wire()})


def _append_past(rig: Rig, tape: Path, windows: int) -> None:
    """Fill the log as a feed would have in so many windows that have passed."""
    end_ms = rig.clock_ms() - 1_000
    start_ms = end_ms - windows * W
    trades = list(islice(read_tape(tape, Refusals()), 10_000))
    with rig.client.pipeline(transaction=False) as pipe:
        for number, trade in enumerate(trades):
            ms = start_ms + number * (end_ms - start_ms) // len(trades)
            stamped = Trade(
                trade.isin, ms * 1_000, trade.seq, trade.price, trade.size, trade.extra
            )
            partition = partition_of(trade.isin, 4)
            pipe.xadd(f"tt:log:{partition}", {"trade": stamped.to_wire()}, id=f"{ms}-*")
        pipe.execute()


def _check_never_back(client: redis.Redis) -> None:
    newest: dict[str, bytes] = {}
    for snapshot in read_snapshots(client):
        for row in snapshot.rows:
            # A row that restates says its sums in full.
            shown = newest.get(row.isin, b"")
            is_restated = row.version == shown and b"," in row.sums
            assert row.version > shown or is_restated, (snapshot.offset, row)
            newest[row.isin] = row.version


def _check_last_values(client: redis.Redis) -> None:
    newest: dict[str, bytes] = {}
    for entry in valid_entries(client):
        trade = Trade.from_wire(entry.payload)
        version = encode_version(trade.time_us, trade.seq, entry.position)
        newest[trade.isin] = max(version, newest.get(trade.isin, b""))
    stored = [LastValue.decode(*item) for item in client.hgetall(KEYS.last).items()]
    assert {value.isin: value.version for value in stored} == newest


def _drain(channel: redis.client.PubSub) -> list[WindowSnapshot]:
    messages: list[WindowSnapshot] = []

    def is_empty() -> bool:
        message = channel.get_message(timeout=0.2)
        if message is not None:
            messages.append(without_days(message["data"]))
        return message is None and bool(messages)

    eventually(is_empty, 20)
    return messages


def _rows(message: WindowSnapshot) -> dict[str, Row]:
    return {row.isin: row for row in message.rows}


def _merged(windows: list[WindowSnapshot]) -> dict[str, Row]:
    merged: dict[str, Row] = {}
    for row in (row for window in windows for row in window.rows):
        before = merged.get(row.isin)
        merged[row.isin] = row if before is None else row.merge(before)
    return merged


def _median(ordered: list[float]) -> float:
    return ordered[len(ordered) // 2]
