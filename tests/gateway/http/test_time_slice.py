"""Long work in the event loop, in pieces."""

import time
from collections.abc import Iterator

from gateway.http.time_slice import SLICE_S, in_slices


def busy_steps(count: int) -> Iterator[int]:
    """Yield numbers, each after a slice of work."""
    for number in range(count):
        until_s = time.monotonic() + SLICE_S
        while time.monotonic() < until_s:
            pass
        yield number


async def test_work_rests_for_as_long_as_it_works() -> None:
    """Half of the time is left to others, however much is to be done."""
    began_s = time.monotonic()
    assert [n async for n in in_slices(busy_steps(20))] == [*range(20)]
    # Without the last digits of a clock.
    assert time.monotonic() - began_s > 1.9 * 20 * SLICE_S
