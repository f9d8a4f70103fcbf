"""What the routes read from: built once, for the public and the operators alike."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.admission.bounds import BOUNDS, Bounds
from gateway.admission.shared_figures import Seat, take_seat
from gateway.health.garbage import CalmCollections
from gateway.health_monitor import HealthMonitor
from gateway.http.operator_access import OperatorAccess
from gateway.live_stream import LiveStream, Stores
from gateway.named_files import read_operators_token
from gateway.settings import GatewaySettings
from gateway.stream.counters import CounterTotals
from gateway.transport.bounded_answers import BytesInFlight

CANCEL_AGAIN_S = 0.1


class Backend:
    """The stream and its clients, the past, and whether all of it is well.

    ``seat`` is this process's place among the workers of its gateway, ``folder`` where
    they can be asked; without them it is the only one. Raises ValueError if a file
    named in the settings cannot be read.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        seat: Seat | None = None,
        folder: Path | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.settings, self.bounds = settings, bounds
        width, name = len(CounterTotals.NAMES), str(os.getpid())
        self.seat = seat = seat or take_seat(width, name=name)
        self.access = OperatorAccess(read_operators_token(settings))
        self.in_flight = BytesInFlight(bounds.answer_bytes)
        self.stream = LiveStream(settings, seat, bounds)
        self.stores = Stores(self.stream)
        self.health = HealthMonitor(self.stream, seat, folder)

    @asynccontextmanager
    async def running(
        self, on_end: Callable[[asyncio.Task[None]], None]
    ) -> AsyncIterator[None]:
        """Follow the stream and look after the clients within the block.

        ``on_end`` is told when one of the tasks that must not end has ended.
        """
        stream = self.stream
        garbage = CalmCollections(lambda: stream.board.window_ms)
        work = [
            *stream.work(),
            *self.health.work(),
            ("history", self.stores.filler.run()),
            ("garbage", garbage.run()),
        ]
        tasks = {name: asyncio.create_task(run, name=name) for name, run in work}
        for task in tasks.values():
            task.add_done_callback(on_end)
        try:
            await stream.first_look()
            await self.health.ask_redis()
            yield
        finally:
            # No read of the feed is cut off: it ends by itself.
            stream.feed.stop()
            pending = {task for name, task in tasks.items() if name != "feed"}
            while pending:
                # A cancellation that meets an answer of Redis may get lost in its
                # client.
                for task in pending:
                    task.cancel()
                _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
            await asyncio.wait([tasks["feed"]])
            await stream.close()
