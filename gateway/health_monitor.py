"""Whether all is well, by this gateway's own eyes, Redis' and every worker's."""

import asyncio
import os
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from gateway.admission.shared_figures import Seat
from gateway.health.client_census import take_census
from gateway.health.client_states import ClientRow, State, row_of
from gateway.health.findings import Diagnosis, Finding, diagnose
from gateway.health.incidents.incident_book import Incident
from gateway.health.incidents.incident_keeper import IncidentKeeper
from gateway.health.jobs import JobStarts, PipelineState, Upstream
from gateway.health.metrics import Exporter
from gateway.health.overload import LoadMonitor, Overload
from gateway.health.pipeline_reader import PipelineReader, RelayReader
from gateway.health.readiness import (
    Fault,
    GatewayState,
    Readiness,
    Reason,
    all_faults,
    faults_of_gateway,
    faults_of_pipeline,
)
from gateway.live_stream import LiveStream
from gateway.named_files import read_topic
from gateway.stream.window_timings import KEPT, WindowTiming
from gateway.workers.pulse import BEAT_S, beat, lost_workers_ms
from gateway.workers.siblings import Question, Siblings
from gateway.workers.worker_report import (
    WorkerReport,
    add_states,
    join_reasons,
    join_timings,
)
from ingest.market_hours.hours import MarketHours, MarketState

LOOK_S = 0.5
"""How often the gateway asks itself whether it is ready."""

STARTING_S = 15.0
"""So long after a start it is no fault that no window has come."""

CALENDAR_ENDS_SOON = timedelta(days=30)
"""So long before the last day of a calendar it is told."""

T = TypeVar("T")

_REPORT, _ROW = TypeAdapter(WorkerReport), TypeAdapter(ClientRow)
_INCIDENTS, _BOOL = TypeAdapter(list[Incident]), TypeAdapter(bool)


@dataclass(frozen=True, slots=True)
class Look:
    """All that can be known of the pipeline and of this gateway at one moment."""

    pipeline: PipelineState
    reports: Sequence[WorkerReport]
    gateway: GatewayState
    reasons: Sequence[Reason]
    timings: Sequence[WindowTiming]
    diagnosis: Diagnosis


class HealthMonitor:
    """Judges the stream, the pipeline and the workers, and finds any worker's clients.

    ``seat`` is this process's place among the workers of its gateway, ``folder`` where
    the others can be asked; without it there are none.
    """

    def __init__(self, stream: LiveStream, seat: Seat, folder: Path | None) -> None:
        settings = stream.settings
        self.settings, self.seat = settings, seat
        self.board, self.hub, self.feed = stream.board, stream.hub, stream.feed
        self.started_ms = _now_ms()
        self.siblings = Siblings(folder, seat.worker, self._answer)
        self._relay = stream.relay
        self.pipeline: PipelineReader | RelayReader = RelayReader(self.upstream)
        if self._relay is None:
            topic = read_topic(settings)
            self.pipeline = PipelineReader(stream.redis, stream.keys, topic)
        views = self.reasons, self.markets
        self.exporter = Exporter(settings, self.hub, self.feed, *views, seat.name)
        self.load = LoadMonitor(
            Overload(settings.max_memory_bytes, stream.hub.bounds.loop_lag_s),
            self.exporter.loop_was_late,
            self.hub.shed_heaviest,
        )
        self.hub.excess = lambda: self.load.excess
        self._totals = stream.totals
        self._faults_of_pipeline: dict[str, Fault] = {}
        self._hours = MarketHours.parse(settings.market_hours)
        self._readiness = Readiness()
        self._starts = JobStarts()
        self._incidents = IncidentKeeper(settings.incidents_file, self._findings)

    def work(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """Return what has to run, by name."""
        return [
            ("load", self.load.run()),
            ("readiness", self._keep_judging()),
            ("incidents", self._keep_incidents()),
            ("metrics", self.exporter.run()),
            ("siblings", self.siblings.run()),
            ("pulse", self._beat()),
        ]

    def state(self) -> GatewayState:
        """Return what the gateway itself sees at the moment."""
        now_s, feed = time.monotonic(), self.feed
        now_ms = _now_ms()
        silence_s, quiet_s = feed.silence_s(now_s), feed.quiet_s(now_s)
        opened_ms = self._hours.open_since_ms(now_ms)
        # What is quiet before the market opens is not quiet yet.
        open_s = 0.0 if opened_ms is None else (now_ms - opened_ms) / 1_000
        today = datetime.fromtimestamp(now_ms / 1_000, UTC).date()
        return GatewayState(
            self.started_ms,
            self.board.window_ms,
            self.board.position.window,
            None if feed.is_live(now_s) else feed.silence_reason(now_s),
            silence_s or 0.0,
            min(quiet_s, open_s),
            self.settings.quiet_s,
            feed.is_cut_off,
            self.load.excess,
            opened_ms,
            # While no window has come, it is quiet since the start.
            is_starting=silence_s is None and quiet_s < STARTING_S,
            starts=self._starts.lasting(),
            lost_workers_ms=lost_workers_ms(self.seat.lost_ms),
            upstream=self.settings.follow,
            calendars_end=self._hours.ended(today + CALENDAR_ENDS_SOON),
        )

    def upstream(self) -> Upstream | None:
        """Return what is followed in place of Redis, None if nothing is."""
        relay, url, here = self._relay, self.settings.follow, self.board.position
        if relay is None or url is None:
            return None
        there = relay.place
        behind = there.offset - here.offset if there.epoch == here.epoch else 0
        levels = len(relay.path)
        return Upstream(url, levels, max(0, behind), relay.is_job_starting)

    def markets(self) -> list[MarketState]:
        """Return how each market is whose hours are known."""
        return self._hours.states(_now_ms())

    def reasons(self) -> tuple[Reason, ...]:
        """Return every reason why the gateway is not ready; none is good.

        What Redis has to be asked for is ``LOOK_S`` old at most, the rest is of now.
        """
        faults = all_faults(faults_of_gateway(self.state()), self._faults_of_pipeline)
        return self._readiness.judge(faults, _now_ms())

    async def reports(
        self, limit: int = 0, only: State | None = None
    ) -> list[WorkerReport]:
        """Return what every worker of the gateway says of itself, this one first.

        Each names up to ``limit`` of its slowest clients, ``only`` of a state.
        """
        question = {"ask": "report", "limit": limit, "state": only}
        others = await self.siblings.ask(question)
        return [await self._report(limit, only), *map(_REPORT.validate_python, others)]

    async def look(self) -> Look:
        """Ask Redis, the log and every worker, and judge what they say."""
        pipeline = await self.pipeline.read_with_log()
        reports = await self.reports()
        gateway, reasons = self.state(), join_reasons(reports)
        timings, states = join_timings(reports), add_states(reports)
        judged = diagnose(gateway, pipeline, reasons, timings, states)
        return Look(pipeline, reports, gateway, reasons, timings, judged)

    async def incidents(self) -> list[Incident] | None:
        """Return what was wrong: what lasts first, then the newest first.

        One worker keeps them; None while it does not answer.
        """
        return await self._first({"ask": "incidents"}, _INCIDENTS)

    async def note_incident(self, incident_id: str, text: str) -> bool | None:
        """Write down what was done; False if there is no such incident.

        None while the worker that keeps them does not answer.
        """
        return await self._first(
            {"ask": "note", "id": incident_id, "text": text}, _BOOL
        )

    async def find_client(self, client_id: str) -> ClientRow | None:
        """Describe a client of any worker, None if it is not connected."""
        return await self._first({"ask": "client", "id": client_id}, _ROW)

    async def dismiss_client(self, client_id: str) -> bool:
        """Close a client of any worker as an operator; say whether there was one."""
        row = await self._first({"ask": "dismiss", "id": client_id}, _ROW)
        return row is not None

    async def _first(self, question: Question, kind: TypeAdapter[T]) -> T | None:
        """Return the first answer that a worker has, this one's before the others'."""
        answer: T | None = await self._answer(question)
        if answer is not None:
            return answer
        others = await self.siblings.ask(question)
        return next(map(kind.validate_python, others), None)

    async def _report(self, limit: int, only: State | None) -> WorkerReport:
        census = await take_census(self.hub.clients(), limit, only)
        now_s, now_ms = time.monotonic(), _now_ms()
        return WorkerReport(
            self.seat.worker,
            os.getpid(),
            census.states,
            self.load.rss_bytes,
            round(self.load.lag_s * 1_000),
            self.reasons(),
            list(self.hub.timings.newest(KEPT)),
            [row_of(client, now_s, now_ms) for client in census.slowest()],
        )

    async def _answer(self, question: Question) -> Any:
        """Answer another worker, of this one only."""
        match question["ask"]:
            case "report":
                return await self._report(question["limit"], question["state"])
            case "client" | "dismiss" as kind:
                client = self.hub.find(question["id"])
                if client is None:
                    return None
                if kind == "dismiss":
                    self.hub.dismiss(client)
                return row_of(client, time.monotonic(), _now_ms())
            case "incidents" if self._keeps_incidents:
                return self._incidents.incidents()
            case "note" if self._keeps_incidents:
                return await self._incidents.note(question["id"], question["text"])
            case "incidents" | "note":
                return None
        raise ValueError(f"ask: {question['ask']}: is no question")

    @property
    def _keeps_incidents(self) -> bool:
        return self.seat.worker == 0

    async def _findings(self) -> Sequence[Finding]:
        findings = (await self.look()).diagnosis.findings
        self.exporter.findings = findings
        return findings

    async def _keep_incidents(self) -> None:
        if not self._keeps_incidents:
            await asyncio.Event().wait()
        await self._incidents.run()

    async def ask_redis(self) -> None:
        """Find out what only Redis can tell."""
        pipeline = await self.pipeline.read(at_most_s=0)
        self.exporter.pipeline = pipeline
        window_ms = self.board.window_ms
        self._starts.observe(pipeline, window_ms)
        self._faults_of_pipeline = faults_of_pipeline(
            pipeline, window_ms, self._starts.lasting()
        )
        self.feed.is_job_starting = "starting" in self._faults_of_pipeline

    async def _beat(self) -> None:
        while True:
            beat(self.seat)
            await asyncio.sleep(BEAT_S)

    async def _keep_judging(self) -> None:
        # Nobody may ask for an hour, and then want to know since when.
        while True:
            await self.ask_redis()
            self.reasons()
            self._totals.store()
            await asyncio.sleep(LOOK_S)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
