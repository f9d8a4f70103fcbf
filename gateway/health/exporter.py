"""Keeps the gateway's metrics up to date, and shows them."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence

import structlog
from prometheus_client import CollectorRegistry

from gateway.health.client_census import take_census
from gateway.health.finding_codes import CODES
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
        self.loop_was_late = self._metrics.loop_was_late

    async def run(self) -> None:
        """Keep the metrics up to date until cancelled; then take leave."""
        # Whoever shares the folder shows them too: not only when we are asked.
        try:
            for number in itertools.count():
                if number % CENSUS_EVERY == 0:
                    await self._take_census()
                self._renew()
                await asyncio.sleep(COUNT_S)
        finally:
            self._renew()
            forget_process(self._name, self._shared)

    async def render(self) -> tuple[bytes, str]:
        """Return the metrics as Prometheus reads them, and their content type."""
        self._renew()
        # Some milliseconds: not the event loop's.
        return await asyncio.to_thread(render, self._registry, self._shared)

    async def _take_census(self) -> None:
        hub = self._hub
        census = await take_census(hub.clients())
        self._metrics.show_each("clients", census.states)
        self._metrics.show(
            instruments_listed=len(hub.instruments),
            instruments_unlisted=len(hub.board.unlisted(hub.instruments)),
        )

    def _renew(self) -> None:
        try:
            self._take_in()
        except OSError as error:
            # A folder without room: prices still go out, the numbers stand still.
            if not self._is_failing:
                log.warning("the metrics cannot be kept", error=str(error))
            self._is_failing = True

    def _take_in(self) -> None:
        metrics, hub, pipeline = self._metrics, self._hub, self.pipeline
        board, codes = hub.board, {finding.code for finding in self.findings}
        metrics.count(hub.counters, hub.close_log)
        metrics.windows_went_out(hub.timings)
        metrics.judged(self._reasons())
        metrics.markets(self._hours.states(time.time_ns() // 1_000_000))
        metrics.show_each("finding", {code: code in codes for code in CODES})
        metrics.show(
            firehose_viewers=self.firehose_viewers(),
            newest_window_timestamp_seconds=(board.position.window or 0) / 1_000,
            last_trade_timestamp_seconds=(
                time.time() - self._feed.quiet_s(time.monotonic())
            ),
            window_length_seconds=board.window_ms / 1_000,
            instruments=len(board),
            groups=len(board.groups),
        )
        if pipeline is not None and pipeline.memory is not None:
            metrics.show(
                redis_used_memory_bytes=pipeline.memory.used_bytes,
                redis_max_memory_bytes=pipeline.memory.max_bytes,
            )
        if pipeline is not None and pipeline.log.partitions is not None:
            ends = pipeline.log.partitions.values()
            metrics.show(log_trades=sum(end.left or 0 for end in ends))
