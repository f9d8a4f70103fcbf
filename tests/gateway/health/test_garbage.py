"""Full collections: when, and that Python begins none by itself."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.health.garbage import (
    CALM,
    MOST_OF_TIME,
    PYTHON_S_OWN,
    CalmCollections,
    wait_s,
)
from gateway.stream.client import Client
from tests.conftest import eventually
from tests.gateway.servers import Gateway


@given(
    st.integers(0, 2**42), st.sampled_from([500, 1_000, 2_000, 5_000]), st.floats(0, 1)
)
def test_collections_are_between_windows_and_take_little_of_the_time(
    now_ms: int, window_ms: int, took_s: float
) -> None:
    """The next moment is the first calm one that is not too early."""
    waits_s = wait_s(now_ms, window_ms, took_s)
    rest_s = took_s / MOST_OF_TIME
    assert rest_s <= waits_s <= rest_s + window_ms / 1_000
    into_ms = (now_ms + waits_s * 1_000) % window_ms
    assert into_ms == pytest.approx(CALM * window_ms, abs=0.01)


@pytest.fixture
async def was_full() -> AsyncIterator[asyncio.Event]:
    """Return an event that a full collection sets."""
    happened = asyncio.Event()

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 2:
            happened.set()

    gc.callbacks.append(note)
    yield happened
    gc.callbacks.remove(note)


async def test_python_begins_no_full_collection_by_itself(
    was_full: asyncio.Event,
) -> None:
    """Not for a million new objects; at the next calm moment there is one."""
    # It waits fifty times as long as the last one took: nothing may be left to look at.
    gc.collect()
    gc.freeze()
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    assert frozen > PYTHON_S_OWN
    task = asyncio.create_task(CalmCollections(lambda: 20).run())
    await asyncio.sleep(0)
    was_full.clear()
    kept = [[number] for number in range(1_000_000)]
    assert not was_full.is_set()
    async with asyncio.timeout(60):
        await was_full.wait()
    del kept
    task.cancel()
    await asyncio.wait([task])
    assert gc.get_threshold() == before
    # Still frozen, but for those that nothing refers to any more.
    assert gc.get_freeze_count() > frozen - PYTHON_S_OWN


async def test_what_was_there_before_is_looked_at_once() -> None:
    """Then it is frozen, for it took long, until the gateway ends."""
    gc.unfreeze()
    try:
        task = asyncio.create_task(CalmCollections(lambda: 60_000).run())
        await asyncio.sleep(0)
        assert gc.get_freeze_count() > PYTHON_S_OWN
        task.cancel()
        await asyncio.wait([task])
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


async def test_many_objects_that_come_at_once_are_looked_at_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two calm moments thousands of clients may come."""
    monkeypatch.setattr("gateway.health.garbage.MOST_S", 0)
    gc.unfreeze()
    looked_at: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 2:
            looked_at.append(len(gc.get_objects()))

    task = asyncio.create_task(CalmCollections(lambda: 60_000).run())
    gc.callbacks.append(note)
    try:
        await asyncio.sleep(0)
        # All that there was before.
        looked_at.clear()
        kept = [[number] for number in range(500_000)]
        assert len(looked_at) > 10
        assert max(looked_at) < 25_000
        del kept
        task.cancel()
        await asyncio.wait([task])
    finally:
        gc.callbacks.remove(note)
        gc.freeze()


async def test_little_is_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was in use at that moment and refers to itself could never go."""
    monkeypatch.setattr("gateway.health.garbage.MOST_S", 3_600)
    gc.unfreeze()
    try:
        task = asyncio.create_task(CalmCollections(lambda: 60_000).run())
        await asyncio.sleep(0)
        assert gc.get_freeze_count() < PYTHON_S_OWN
        task.cancel()
        await asyncio.wait([task])
    finally:
        gc.freeze()


@pytest.mark.redis
def test_a_connections_objects_end_without_a_collection(gateway: Gateway) -> None:
    """So what is frozen goes, too, with the connection that it belongs to."""

    def clients() -> list[Client]:
        return [one for one in gc.get_objects() if type(one) is Client]

    gc.disable()
    try:
        with ExitStack() as stack:
            for number in range(10):
                stream = stack.enter_context(gateway.stream("?keys=*"))
                stream.take("ack")
                if number % 2:
                    # Gone without a word.
                    end = stream.connection.socket.shutdown
                    stack.callback(end, socket.SHUT_RDWR)
            assert len(clients()) == 10
        # Whoever looks after clients in turn still has the last one.
        eventually(lambda: len(clients()) <= 1, 20)
    finally:
        gc.enable()
