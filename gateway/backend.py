"""What the routes read from: built once, for the public and the operators alike."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gateway.admission.shared_figures import Seat, take_seat
from gateway.admission.tokens import TokenReader
from gateway.admission.work import WorkBudget
from gateway.health.client_census import take_census
from gateway.health.client_states import ClientRow, State, row_of
from gateway.health.exporter import Exporter
from gateway.health.findings import Diagnosis, Finding, diagnose
from gateway.health.garbage import CalmCollections
from gateway.health.incidents.incident_book import Incident
from gateway.health.incidents.incident_keeper import IncidentKeeper
from gateway.health.job_starts import JobStarts
from gateway.health.jobs import PipelineState
from gateway.health.overload import LoadMonitor, Overload
from gateway.health.pipeline_reader import PipelineReader
from gateway.health.readiness import (
    Fault,
    GatewayState,
    Readiness,
    Reason,
    all_faults,
    faults_of_gateway,
    faults_of_pipeline,
)
from gateway.http.operator_access import OperatorAccess
from gateway.settings import GatewaySettings, TokenSettings
from gateway.stream.board import Board
from gateway.stream.counters import Counters, CounterTotals
from gateway.stream.hub import Hub
from gateway.stream.window_timings import KEPT, WindowTiming
from gateway.transport.bounded_answers import BytesInFlight
from gateway.upstream.analytics_store import AnalyticsStore
from gateway.upstream.archived_windows import ArchivedWindows
from gateway.upstream.bar_follower import BarFollower
from gateway.upstream.bar_store import BarStore
from gateway.upstream.history_filler import HistoryFiller
from gateway.upstream.issue_follower import IssueFollower
from gateway.upstream.issue_history import IssueHistory
from gateway.upstream.redis_client import create_redis
from gateway.upstream.stream_follower import StreamFollower
from gateway.upstream.window_log import WindowLog
from gateway.workers.pulse import BEAT_S, beat, lost_workers_ms
from gateway.workers.siblings import Question, Siblings
from gateway.workers.worker_report import (
    WorkerReport,
    add_states,
    join_reasons,
    join_timings,
)
from ingest.issue_table.known_issues import Issues
from ingest.issue_table.open_issue_store import open_issue_store
from ingest.kafka.address import KafkaTopic
from ingest.market_hours import MarketHours
from ingest.tradelog.contract import LogUnusable
from throttle.contract.redis_keys import AnalyticsKeys, Keys

LOOK_S = 0.5
"""How often the gateway asks itself whether it is ready."""

CANCEL_AGAIN_S = 0.1

STARTING_S = 15.0
"""So long after a start it is no fault that no window has come."""

_REPORT = TypeAdapter(WorkerReport)

_ROW = TypeAdapter(ClientRow)

_INCIDENTS = TypeAdapter(list[Incident])

MIN_TOKEN_CHARS = 16
"""Length of the shortest token operators may show."""


@dataclass(frozen=True, slots=True)
class Look:
    """All that can be known of the pipeline and of this gateway at one moment."""

    pipeline: PipelineState
    reports: Sequence[WorkerReport]
    gateway: GatewayState
    reasons: Sequence[Reason]
    timings: Sequence[WindowTiming]
    diagnosis: Diagnosis


class Backend:
    """The stream's state, its clients, and whether all of it is well.

    ``seat`` is this process's place among the workers of its gateway, ``folder`` where
    they can be asked; without them it is the only one. Raises ValueError if a file
    named in the settings cannot be read.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        seat: Seat | None = None,
        folder: Path | None = None,
    ) -> None:
        self.settings = settings
        self.seat = seat = seat or take_seat(
            len(CounterTotals.NAMES), name=str(os.getpid())
        )
        self.siblings = Siblings(folder, seat.worker, self._answer)
        self.started_ms = time.time_ns() // 1_000_000
        self.board, self.counters = Board(), Counters()
        self.totals = CounterTotals(self.counters, seat.counters, seat.worker)
        self.in_flight = BytesInFlight(settings.max_answer_bytes)
        self.access = OperatorAccess(read_operators_token(settings))
        self.load = LoadMonitor(
            Overload(settings.max_memory_bytes, settings.max_loop_lag_ms / 1_000),
            lambda lag_s: self.exporter.loop_was_late(lag_s),
            lambda: self.hub.shed_heaviest(),
        )
        self.hub = Hub(
            self.board,
            settings,
            self.counters,
            create_token_reader(settings),
            seat.tally(seat.streams),
            WorkBudget(settings.rows_per_second, seat.work_moments, seat.key),
        )
        self.hub.excess = lambda: self.load.excess
        self.redis = create_redis(settings.redis_url)
        self.keys = Keys(settings.namespace)
        self.feed = StreamFollower(
            self.redis, self.keys, self.board, self.hub, self.counters
        )
        self._issue_store = open_issue_store(settings)
        self.issues = IssueFollower(
            self._issue_store, self._relist, self.counters, settings.served_market
        )
        self.analytics_keys = AnalyticsKeys(settings.namespace)
        self.archived = ArchivedWindows(settings.archive_dir, lambda: self.hub.issues)
        self.bar_store = BarStore(self.redis, self.analytics_keys, self.archived)
        self.analytics_store = AnalyticsStore(self.redis, self.analytics_keys)
        self.bars = BarFollower(
            self.redis, self.analytics_keys, self.hub.bar_desk, self.counters
        )
        self.window_log = WindowLog(self.redis, self.keys, lambda: self.hub.issues)
        self.history = IssueHistory(settings.history_bytes)
        self._history_filler = HistoryFiller(self.history, self.window_log)
        self.feed.listeners.append(self._history_filler)
        self.pipeline = PipelineReader(self.redis, self.keys, read_topic(settings))
        self._faults_of_pipeline: dict[str, Fault] = {}
        self.exporter = Exporter(settings, self.hub, self.feed, self.reasons, seat.name)
        self._hours = MarketHours.parse(settings.market_hours)
        self._readiness = Readiness()
        self._starts = JobStarts()
        self._incidents = IncidentKeeper(settings.incidents_file, self._findings)

    @asynccontextmanager
    async def running(
        self, on_end: Callable[[asyncio.Task[None]], None]
    ) -> AsyncIterator[None]:
        """Follow the stream and look after the clients within the block.

        ``on_end`` is told when one of the tasks that must not end has ended.
        """
        tasks = {
            name: asyncio.create_task(work, name=name) for name, work in self._work()
        }
        for task in tasks.values():
            task.add_done_callback(on_end)
        try:
            await self.feed.first_look()
            await self.issues.first_look()
            await self._ask()
            yield
        finally:
            # No read of the feed is cut off: it ends by itself.
            self.feed.stop()
            pending = {task for name, task in tasks.items() if name != "feed"}
            while pending:
                # A cancellation that meets an answer of Redis may get lost in its
                # client.
                for task in pending:
                    task.cancel()
                _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
            await asyncio.wait([tasks["feed"]])
            await self.redis.aclose()
            self._issue_store.close()
            self.hub.close_log.tell_rest()

    def state(self) -> GatewayState:
        """Return what the gateway itself sees at the moment."""
        now_s, feed = time.monotonic(), self.feed
        now_ms = time.time_ns() // 1_000_000
        silence_s, quiet_s = feed.silence_s(now_s), feed.quiet_s(now_s)
        opened_ms = self._hours.open_since_ms(now_ms)
        # What is quiet before the market opens is not quiet yet.
        open_s = 0.0 if opened_ms is None else (now_ms - opened_ms) / 1_000
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
        )

    def reasons(self) -> tuple[Reason, ...]:
        """Return every reason why the gateway is not ready; none is good.

        What Redis has to be asked for is ``LOOK_S`` old at most, the rest is of now.
        """
        faults = all_faults(faults_of_gateway(self.state()), self._faults_of_pipeline)
        return self._readiness.judge(faults, time.time_ns() // 1_000_000)

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
        if self._keeps_incidents:
            return self._incidents.incidents()
        found = await self.siblings.ask({"ask": "incidents"})
        return next(map(_INCIDENTS.validate_python, found), None)

    async def note_incident(self, incident_id: str, text: str) -> bool | None:
        """Write down what was done; False if there is no such incident.

        None while the worker that keeps them does not answer.
        """
        if self._keeps_incidents:
            return await self._incidents.note(incident_id, text)
        question = {"ask": "note", "id": incident_id, "text": text}
        return next(iter(await self.siblings.ask(question)), None)

    async def find_client(self, client_id: str) -> ClientRow | None:
        """Describe a client of any worker, None if it is not connected."""
        client = self.hub.find(client_id)
        if client is not None:
            return row_of(client, time.monotonic(), time.time_ns() // 1_000_000)
        question = {"ask": "client", "id": client_id}
        found = filter(None, await self.siblings.ask(question))
        return next(map(_ROW.validate_python, found), None)

    async def dismiss_client(self, client_id: str) -> bool:
        """Close a client of any worker as an operator; say whether there was one."""
        client = self.hub.find(client_id)
        if client is None:
            return any(await self.siblings.ask({"ask": "dismiss", "id": client_id}))
        self.hub.dismiss(client)
        return True

    async def _report(self, limit: int, only: State | None) -> WorkerReport:
        census = await take_census(self.hub.clients(), limit, only)
        now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
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
            case "client" | "dismiss" as wanted:
                client = self.hub.find(question["id"])
                if client is None:
                    return None
                if wanted == "dismiss":
                    self.hub.dismiss(client)
                return row_of(client, time.monotonic(), time.time_ns() // 1_000_000)
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

    async def _ask(self) -> None:
        """Find out what only Redis can tell."""
        pipeline = await self.pipeline.read(at_most_s=0)
        self.exporter.pipeline = pipeline
        window_ms = self.board.window_ms
        self._starts.observe(pipeline, window_ms)
        self._faults_of_pipeline = faults_of_pipeline(
            pipeline, window_ms, self._starts.lasting()
        )
        self.feed.is_job_starting = "starting" in self._faults_of_pipeline

    def _relist(self, issues: Issues) -> None:
        before = [issue.isin for issue in self.hub.issues]
        self.hub.change_issues(issues)
        is_part = self.settings.served_market is not None
        if is_part and before != [issue.isin for issue in issues]:
            self.feed.relist()

    async def _follow_stream(self) -> None:
        if self.settings.served_market is not None:
            # The table says what of the stored state is served.
            await self.issues.first_look()
        await self.feed.run()

    def _work(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        return [
            ("feed", self._follow_stream()),
            ("hub", self.hub.run()),
            ("load", self.load.run()),
            ("garbage", CalmCollections(lambda: self.board.window_ms).run()),
            ("issues", self.issues.run()),
            ("history", self._history_filler.run()),
            ("bars", self.bars.run()),
            ("readiness", self._keep_judging()),
            ("incidents", self._keep_incidents()),
            ("metrics", self.exporter.run()),
            ("siblings", self.siblings.run()),
            ("pulse", self._beat()),
        ]

    async def _beat(self) -> None:
        while True:
            beat(self.seat)
            await asyncio.sleep(BEAT_S)

    async def _keep_judging(self) -> None:
        # Nobody may ask for an hour, and then want to know since when.
        while True:
            await self._ask()
            self.reasons()
            self.totals.store()
            await asyncio.sleep(LOOK_S)


def check_files(settings: GatewaySettings) -> None:
    """Raise ValueError with one sentence if a file in the settings cannot be read."""
    read_operators_token(settings)
    create_token_reader(settings)
    read_topic(settings)


def create_token_reader(settings: TokenSettings) -> TokenReader | None:
    """Read the key of the tokens; None if no tokens are asked for.

    Raises ValueError with one sentence if there is no such file, or no such key.
    """
    path = settings.token_key_file
    if path is None:
        return None
    key = _read_secret("token_key_file", path)
    try:
        return TokenReader(
            key,
            settings.token_algorithm,
            settings.token_audience,
            settings.token_issuer,
        )
    except ValueError as error:
        raise ValueError(f"token_key_file {path}: {error}") from None


def read_operators_token(settings: GatewaySettings) -> str | None:
    """Read the operators' token; None if none is asked for.

    Raises ValueError with one sentence if there is no such file, or none in it.
    """
    path = settings.operators_token_file
    if path is None:
        return None
    token = _read_secret("operators_token_file", path)
    if len(token) < MIN_TOKEN_CHARS or not token.isascii():
        raise ValueError(
            f"operators_token_file {path}: a token has {MIN_TOKEN_CHARS} characters of "
            "ASCII or more"
        )
    return token


def _read_secret(setting: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{setting} {path}: {reason}") from None


def read_topic(settings: GatewaySettings) -> KafkaTopic | None:
    """Return the topic that is the log, None if the log is not Kafka's.

    Raises ValueError with one sentence if ``kafka_config`` cannot be used.
    """
    try:
        return settings.topic()
    except LogUnusable as error:
        raise ValueError(str(error)) from None
