"""Requests on their way to the log: in order, told when they are there."""

import asyncio

import pytest

from ingest.feed.supply import CHUNK, Ended
from intake.waiting_requests import Requests


def entries(count: int, size: int = 10) -> list[tuple[str, bytes]]:
    return [(f"K{n}", b"%0*d" % (size, n)) for n in range(count)]


async def test_a_request_is_done_when_its_entries_are_in_the_log() -> None:
    requests = Requests()
    first, second = requests.put(entries(3)), requests.put(entries(2))

    taken = requests.take(5.0)
    assert taken is not None
    assert len(taken.entries) == 5
    await asyncio.sleep(0)
    assert not first.done()
    requests.acknowledged()
    await asyncio.wait_for(asyncio.gather(first, second), 5)


async def test_requests_are_taken_as_a_whole() -> None:
    requests = Requests()
    requests.put(entries(CHUNK - 1))
    second = requests.put(entries(2))

    taken = requests.take(0.0)
    assert taken is not None
    assert len(taken.entries) == CHUNK - 1
    requests.acknowledged()
    await asyncio.sleep(0.01)
    assert not second.done()
    assert requests.unsent == 2


async def test_a_stop_takes_in_no_more_and_keeps_what_came() -> None:
    requests = Requests()
    done = requests.put(entries(1))
    requests.stop()
    with pytest.raises(Ended):
        requests.put(entries(1))
    assert not requests.is_over
    assert requests.take(0.0) is not None
    assert requests.is_over
    requests.acknowledged()
    await asyncio.wait_for(done, 5)


async def test_what_is_given_up_is_said_to_be_in_doubt() -> None:
    requests = Requests()
    taken, waiting = requests.put(entries(1)), None
    requests.take(0.0)
    waiting = requests.put(entries(1))
    requests.give_up()
    for done in (taken, waiting):
        with pytest.raises(Ended):
            await asyncio.wait_for(done, 5)
