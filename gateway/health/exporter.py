"""Keeps the gateway's metrics up to date, and shows them."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence

import structlog
from prometheus_client import CollectorRegistry

from gateway.health.client_census import take_census
from gateway.health.findings import Finding
from gateway.health.jobs import PipelineState
from gateway.health.metrics import GatewayMetrics
from gateway.health.readiness import Reason
from gateway.settings import GatewaySettings
from gateway.stream.hub import Hub
from gateway.upstream.stream_follower import StreamFollower
from ingest.market_hours.hours import MarketHours
from ingest.process.prometheus import forget_process, render

log = structlog.get_logger()

COUNT_S = 0.5
"""How often the metrics are brought up to date."""

CENSUS_EVERY = 4
"""Clients are counted by state once in this many times."""


class Exporter:
    """The metrics of one gateway, or with a shared folder of all processes in it.

    ``name`` is what the folder's files of this process have in their names.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        hub: Hub,
        feed: StreamFollower,
        reasons: Callable[[], Sequence[Reason]],
        name: str,
    ) -> None:
        self._name = name
        self._shared = settings.metrics_dir
        self._hub = hub
        self._feed = feed
        self._reasons = reasons
        self.firehose_viewers: Callable[[], int] = lambda: 0
        """How many look at the firehose; whoever has it says so."""
        self.pipeline: PipelineState | None = None
        self.findings: Sequence[Finding] = ()
        """What was wrong when somebody looked last."""
        self._hours = MarketHours.parse(settings.market_hours)
        self._is_failing = False
        self._registry = CollectorRegistry()
        self._metrics = GatewayMetrics(self._registry)

    async def run(self) -> None:
        """Keep the metrics up to date until cancelled; then take leave."""
        # Whoever shares the folder shows them too: not only when we are asked.
        try:
            for number in itertools.count():
                if number % CENSUS_EVERY == 0:
                    census = await take_census(self._hub.clients())
                    self._metrics.clients(census.states)
                    instruments = self._hub.instruments
                    unlisted = self._hub.board.unlisted(instruments)
                    self._metrics.listed(len(instruments), len(unlisted))
                self._renew()
                await asyncio.sleep(COUNT_S)
        finally:
            self._renew()
            forget_process(self._name, self._shared)

    def loop_was_late(self, lag_s: float) -> None:
        """Take in a sample of the event loop's lag."""
        self._metrics.loop_was_late(lag_s)

    async def render(self) -> tuple[bytes, str]:
        """Return the metrics as Prometheus reads them, and their content type."""
        self._renew()
        # Some milliseconds: not the event loop's.
        return await asyncio.to_thread(render, self._registry, self._shared)

    def _renew(self) -> None:
        try:
            self._take_in()
        except OSError as error:
            # A folder without room: prices still go out, the numbers stand still.
            if not self._is_failing:
                log.warning("the metrics cannot be kept", error=str(error))
            self._is_failing = True

    def _take_in(self) -> None:
        metrics, hub, feed = self._metrics, self._hub, self._feed
        board = hub.board
        metrics.count(hub.counters, hub.close_log)
        metrics.windows_went_out(hub.timings)
        metrics.judged(self._reasons())
        metrics.watched(self.firehose_viewers())
        metrics.markets(self._hours.states(time.time_ns() // 1_000_000))
        metrics.found({finding.code for finding in self.findings})
        if self.pipeline is not None:
            metrics.pipeline(self.pipeline)
        traded_s = time.time() - feed.quiet_s(time.monotonic())
        metrics.stands(
            board.position.window,
            traded_s,
            board.window_ms,
            len(board),
            len(board.groups),
        )
