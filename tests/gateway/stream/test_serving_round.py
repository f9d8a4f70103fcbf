"""Everybody's turn: as often first as last, and from window to window at one time."""

import asyncio
import time
from collections import Counter
from math import ceil

import pytest

from gateway.stream.client import Client
from gateway.stream.serving_round import ROUNDS, SLICE_S, ServingRound, serving_order
from tests.gateway.stream.test_hub import join, make_hub


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1_000, 1_001])
def test_places_move_by_a_hundredth_and_in_the_long_run_everybody_has_every_one(
    count: int,
) -> None:
    """Also from the last window of a round to the first of the next."""
    clients = range(count)
    before: dict[int, int] | None = None
    sums: Counter[int] = Counter()
    for number in range(ROUNDS + 1):
        order = serving_order(clients, number)
        places = {client: place for place, client in enumerate(order)}
        assert sorted(order) == list(clients)
        if before is not None:
            moved = max((abs(places[c] - before[c]) for c in clients), default=0)
            assert moved <= ceil(count / 100) + 1
            sums.update(places)
        before = places
    for total in sums.values():
        assert total / ROUNDS == pytest.approx((count - 1) / 2, abs=1 + count / 100)


async def test_a_spread_window_goes_out_evenly() -> None:
    """Nobody is served before his time; meanwhile no request has to wait."""
    spread_s, hub = 0.3, make_hub()
    clients = [join(hub).client for _ in range(60)]
    served: list[Client] = []
    over = asyncio.Event()
    began_s = time.monotonic()

    def serve(client: Client, now_s: float) -> bool:
        served.append(client)
        share = (now_s + SLICE_S - began_s) / spread_s
        assert len(served) <= ceil(share * len(clients))
        return True

    serving = ServingRound(serve, over.set, lambda: spread_s)
    serving.begin(clients, 7)
    await serving.over(within_s=60)
    assert not over.is_set()
    async with asyncio.timeout(60):
        await over.wait()
    assert served == serving_order(clients, 7)
    assert time.monotonic() - began_s >= spread_s * 0.9
