"""Carries out a load test: one stretch, a capacity search, or a comparison of ways."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from loadtest.client_mix import Audience
from loadtest.feed.feed_plan import FeedPlan
from loadtest.judge.audit import audit
from loadtest.judge.books import movement
from loadtest.judge.capacity_search import conclude, next_load
from loadtest.load_session import Session, session
from loadtest.plan import LoadPlan, Search
from loadtest.report.console import RunDisplay
from loadtest.report.outcome import make_outcome
from loadtest.report.verdict import broken_words
from loadtest.results import Capacity, Outcome, Result, Step
from loadtest.system.deployment import Deployment
from loadtest.system.machine import describe_machine
from loadtest.thresholds import check

JOIN_PER_S = 400
"""So many clients connect in a second at most."""

SETTLE_WINDOWS = 3
"""After a change of load, before it is measured."""

DRAIN_WITHIN_S = 180

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

BASE_RATE = 900
"""Trades a second while something other than their rate is tried."""


class EndedTooSoon(RuntimeError):
    """The run was ended before anything was measured."""


def carry_out(
    plan: LoadPlan,
    instruments: Sequence[str],
    deployment: Deployment,
    progress: RunDisplay,
) -> Result:
    """Run it and return what was found; ``instruments``: the feed's, busiest first.

    The first Ctrl-C or SIGTERM ends the measuring, what was measured is reported.
    Raises EndedTooSoon, FeedFailed, CrowdLost, NoStream and redis.RedisError.
    """
    began_ms = time.time() * 1_000
    capacity: Capacity | None = None
    comparison: Sequence[Outcome] = ()
    with (
        session(deployment, plan.processes, progress, plan.token) as run,
        _ending(run),
    ):
        test = _LoadTest(plan, run, instruments)
        if plan.search is not None:
            outcome, capacity = test.search(plan.search)
        elif plan.polls_every_s:
            outcome, comparison = test.compare()
        else:
            outcome = test.hold()
    # A search ends with what broke; that is what it was for.
    is_passed = capacity is not None or not any(c.is_broken for c in outcome.checks)
    return Result(
        title=f"{plan.title} (ended early)" if run.is_told_to_end else plan.title,
        command=plan.command,
        machine=describe_machine(),
        began_ms=began_ms,
        ended_ms=time.time() * 1_000,
        window_ms=deployment.window_ms,
        outcome=outcome,
        capacity=capacity,
        comparison=comparison,
        is_passed=is_passed,
    )


@contextmanager
def _ending(run: Session) -> Iterator[None]:
    """Have the first signal end the measuring; a second one ends everything."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, _: FrameType | None) -> None:
        run.end_early()
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _LoadTest:
    """A plan and the session it is carried out in; ``instruments``: busiest first."""

    def __init__(
        self, plan: LoadPlan, run: Session, instruments: Sequence[str]
    ) -> None:
        self._plan = plan
        self._run = run
        self._instruments = instruments
        self._window_ms = run.deployment.window_ms

    def hold(self) -> Outcome:
        self._warm_up(self._plan.warm_up, self._plan.audience)
        self._run.phase = "measuring"
        from_ms = self._run.start_feed(self._plan.feed)
        return self._measure(
            self._plan.title, from_ms, self._plan.seconds, is_audited=True
        )

    def search(self, search: Search) -> tuple[Outcome, Capacity]:
        """Raise the load until it breaks; the outcome is that of the last good load."""
        self._warm_up(self._plan.feed.at_rate(BASE_RATE))
        steps: list[Step] = []
        while (
            load := next_load(steps, search.start, search.most, grain=search.grain)
        ) is not None:
            try:
                step = Step(load, self._try(search, load))
            except EndedTooSoon:
                break
            steps.append(step)
            broken = ", ".join(broken_words(step.outcome.checks))
            verdict = "held" if step.is_good else f"broke: {broken}"
            self._run.progress.say(f"{step.outcome.name}: {verdict}")
        if not steps:
            raise EndedTooSoon
        capacity = conclude(search.raised, steps)
        shown = [step for step in steps if step.load == capacity.last_good] or steps
        return shown[-1].outcome, capacity

    def compare(self) -> tuple[Outcome, list[Outcome]]:
        """Serve one audience by polling and by the stream.

        The outcome is the stream's, which comes last.
        """
        self._warm_up(self._plan.warm_up)
        outcomes = []
        for way, audience in self._ways():
            self._run.phase = way
            from_ms = self._change(replace(self._plan.feed, seconds=None), audience)
            outcomes.append(
                self._measure(way, from_ms, self._plan.seconds, is_audited=True)
            )
        *polled, streamed = outcomes
        faults = [
            f"{outcome.name}: {fault}" for outcome in polled for fault in outcome.faults
        ]
        whole = replace(streamed, faults=[*streamed.faults, *faults])
        return replace(whole, checks=check(self._plan.rules, whole)), outcomes

    def _warm_up(self, feed: FeedPlan, audience: Audience | None = None) -> None:
        """Feed for a while, until everything is compiled and the clients are there."""
        self._run.phase = "warming up"
        warm_up_ms = self._plan.warm_up_s * 1_000
        ends_ms = self._run.start_feed(feed) + warm_up_ms
        # The first windows after a start are slow, and not what clients come for.
        self._run.run_until(ends_ms - warm_up_ms * 0.75)
        if audience is not None:
            within_s = min(audience.clients / JOIN_PER_S, self._plan.warm_up_s / 2)
            self._run.join(audience.members(self._instruments), within_s)
        self._run.run_until(ends_ms)

    def _try(self, search: Search, load: float) -> Outcome:
        audience, rate, unit = self._plan.audience, load, "trades/s"
        if search.raised == "clients":
            audience = replace(audience, clients=int(load))
            rate, unit = BASE_RATE, "clients"
        name = f"{load:,.0f} {unit}"
        self._run.phase = f"trying {name}"
        from_ms = self._change(self._plan.feed.at_rate(rate), audience)
        return self._measure(name, from_ms, search.step_s, is_audited=False)

    def _change(self, feed: FeedPlan, audience: Audience) -> float:
        """Have another feed and others come; return from when on that has settled."""
        self._run.leave()
        self._run.start_feed(feed)
        # Pollers come spread over their interval: else they would all ask at once.
        at_least_s = audience.poll_every_s if "polling" in audience.mix else 2.0
        within_s = max(at_least_s, audience.clients / JOIN_PER_S)
        self._run.join(audience.members(self._instruments), within_s)
        windows = time.time() * 1_000 // self._window_ms + 1 + SETTLE_WINDOWS
        return windows * self._window_ms

    def _measure(
        self, name: str, from_ms: float, seconds: float, *, is_audited: bool
    ) -> Outcome:
        """Measure from a window's end on, under the feed that runs; end that feed."""
        run = self._run
        run.run_until(from_ms)
        # Of exactly then, if the job keeps up; in time, as the feed goes on.
        before = run.ledger_at(from_ms)
        windows = max(1, round(seconds * 1_000 / self._window_ms))
        to_ms = from_ms + windows * self._window_ms
        run.run_until(to_ms)
        if run.is_told_to_end:
            to_ms = time.time() * 1_000 // self._window_ms * self._window_ms
            if to_ms <= from_ms:
                raise EndedTooSoon
        feeding = run.stop_feed()
        after = run.drain(DRAIN_WITHIN_S)
        audited = audit(run.deployment, run.follower, after) if is_audited else None
        first_news_ms = audited.first_news_ms if audited else None
        reference = run.follower.run.reference(first_news_ms)
        outcome = make_outcome(
            name=name,
            from_ms=from_ms,
            to_ms=to_ms,
            feeding=feeding,
            books=movement(before, after),
            audit=audited.audit if audited else None,
            # Of the windows after the one that ends as the stretch begins.
            judgement=run.crowd.judge(reference, from_ms + 1, to_ms),
            incidents=[*run.follower.faults, *run.deployment.incidents()],
            run=run.follower.run,
            recorder=run.recorder,
            usage=run.usage,
        )
        return replace(outcome, checks=check(self._plan.rules, outcome))

    def _ways(self) -> Iterator[tuple[str, Audience]]:
        audience = self._plan.audience
        for every_s in self._plan.polls_every_s:
            yield (
                f"polling every {every_s:g} s",
                replace(audience, mix={"polling": 1.0}, poll_every_s=every_s),
            )
        yield "WebSocket", replace(audience, mix={"watch": 1.0})
