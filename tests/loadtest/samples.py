"""A made-up result of a load test, plausible in every part; same seed, same result."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from loadtest.figures.percentiles import summarize
from loadtest.results import (
    Audit,
    BookMovement,
    Capacity,
    Feeding,
    KindOutcome,
    Outcome,
    ProcessUsage,
    Result,
    Seconds,
    Step,
    Summary,
    Windows,
)
from loadtest.thresholds import check, parse

BEGAN_MS = 1_790_000_000_000.0
WINDOW_MS = 2_000
JOINING_S = 20
RULES = ("lag.p99>1s", "staleness.p99>2.5s", "feed.behind.p99>100ms")
SHARES = {"watch": 0.8, "market": 0.05, "sse": 0.05, "slow": 0.04, "stalled": 0.01}
SHARES |= {"reconnecting": 0.03, "polling": 0.02}
# Name, whether it is the test's own, share of a core, MiB.
PROCESSES = (
    ("throttle JVM", False, 0.45, 820.0),
    ("throttle driver", False, 0.09, 160.0),
    ("throttle worker", False, 0.14, 210.0),
    ("gateway", False, 0.38, 145.0),
    ("valkey", False, 0.07, 96.0),
    ("feed", True, 0.11, 88.0),
    ("crowd 1", True, 0.31, 120.0),
    ("crowd 2", True, 0.29, 118.0),
)


def make_outcome(
    seconds: int = 600, clients: int = 1_000, rate: float = 900.0, seed: int = 7
) -> Outcome:
    """Return a run that held: no fault, books that balance, a few slow moments."""
    rng = random.Random(seed)
    series = make_seconds(seconds, clients, rate, rng)
    windows = make_windows(seconds * 1_000 // WINDOW_MS, rate, rng)
    due = round(sum(rate or 0 for rate in series.append_rate[JOINING_S:]))
    rows = sum(int(count or 0) for count in windows.rows)
    lags = [lag for lag in windows.lag_p50_ms if lag is not None]
    spread = [lag * rng.lognormvariate(0, 0.2) for lag in lags for _ in range(20)]
    outcome = Outcome(
        name="load",
        from_ms=BEGAN_MS,
        to_ms=BEGAN_MS + seconds * 1_000,
        feeding=Feeding(
            words=f"simulated market, 2,879 instruments, {rate:,.0f}/s",
            acknowledged=due,
            seconds=seconds,
            behind_ms=summarize(rng.lognormvariate(1.2, 0.6) for _ in range(5_000)),
            refused={},
        ),
        lag_ms=scaled(summarize(spread), clients),
        publish_ms=summarize(ms for ms in windows.publish_ms if ms is not None),
        fanout_ms=summarize(rng.lognormvariate(3, 0.5) for _ in range(5_000)),
        staleness_ms=make_staleness(rng, 1.0),
        kinds=make_kinds(clients, seconds, rng, spread),
        books=BookMovement(
            read=due,
            published=rows,
            superseded=due - rows - due // 100 - 41,
            stale=due // 100,
            refused={"price": 40, "isin": 1},
            windows=len(windows.end_ms),
            problems=(),
        ),
        audit=Audit(
            trades=due, windows=len(windows.end_ms), instruments=2_731, differences=()
        ),
        faults=(),
        seconds=series,
        windows=windows,
        processes=make_processes(seconds, rng),
    )
    return replace(outcome, checks=check(map(parse, RULES), outcome))


def make_seconds(
    seconds: int, clients: int, rate: float, rng: random.Random
) -> Seconds:
    """Return the series by the second, clients joining before it is measured."""
    steps = range(-JOINING_S, seconds)
    due = [rate * (1.5 if 240 <= second < 300 else 1.0) for second in steps]
    joined = [
        min(clients, clients * (second + 1 + JOINING_S) // JOINING_S)
        for second in steps
    ]
    frames = [count / 2 * rng.uniform(0.9, 1.1) for count in joined]
    return Seconds(
        at_ms=[BEGAN_MS + second * 1_000 for second in steps],
        append_rate=[value * rng.uniform(0.97, 1.03) for value in due],
        behind_ms=[rng.lognormvariate(1.6, 0.7) for _ in steps],
        clients=joined,
        frame_rate=frames,
        item_rate=[value * 11 for value in frames],
        byte_rate=[value * 1_450 for value in frames],
        machine_cpu=[rng.gauss(1.75, 0.08) for _ in steps],
    )


def make_windows(count: int, rate: float, rng: random.Random) -> Windows:
    """Return the series by window, with one slow stretch."""
    publish = [rng.lognormvariate(5, 0.18) for _ in range(count)]
    for number in range(count // 2, min(count // 2 + 3, count)):
        publish[number] += 420.0
    p50 = [value + rng.lognormvariate(2.9, 0.3) for value in publish]
    p90 = [value + rng.lognormvariate(2.5, 0.4) for value in p50]
    p99 = [value + rng.lognormvariate(2.6, 0.5) for value in p90]
    trades = [float(round(rng.gauss(rate * 2, rate / 9))) for _ in publish]
    return Windows(
        end_ms=[int(BEGAN_MS) + (step + 1) * WINDOW_MS for step in range(count)],
        trades=trades,
        rows=[float(round(value * rng.uniform(0.27, 0.31))) for value in trades],
        publish_ms=publish,
        lag_p50_ms=p50,
        lag_p90_ms=p90,
        lag_p99_ms=p99,
        lag_max_ms=[value + rng.lognormvariate(3, 0.8) for value in p99],
        merged=[float(max(0, round(rng.gauss(-3, 2)))) for _ in publish],
        staleness_mean_ms=[rng.gauss(540, 30) for _ in publish],
        staleness_p99_ms=[rng.gauss(2_120, 60) for _ in publish],
    )


def make_staleness(rng: random.Random, factor: float) -> Summary:
    """Return a mixture: most keys have no newer trade, some wait for their window."""
    values = [
        rng.uniform(0, 2_150) * factor if rng.random() < 0.4 else 0.0
        for _ in range(4_000)
    ]
    return summarize(values)


def make_kinds(
    clients: int, seconds: int, rng: random.Random, lags: Sequence[float]
) -> Sequence[KindOutcome]:
    """Return what each kind of client saw; only stalled ones were closed."""
    kinds = []
    for kind, share in SHARES.items():
        number = max(1, round(clients * share))
        factor = {"slow": 12.0, "stalled": 80.0, "polling": 20.0}.get(kind, 1.0)
        keys = 480 if kind == "market" else 10
        frames = number * seconds // 2
        is_behind = kind in {"slow", "stalled"}
        kinds.append(
            KindOutcome(
                kind=kind,
                clients=number,
                lag_ms=scaled(summarize(lag * factor for lag in lags), number),
                staleness_ms=make_staleness(rng, math.sqrt(factor)),
                frames=frames,
                items=frames * keys,
                trades=frames * keys * 3,
                bytes=frames * (120 + 95 * keys),
                merged_updates=frames // 4 if is_behind else 0,
                merged_windows=frames if is_behind else 0,
                unseen=number * 20 if kind == "stalled" else 0,
                connections=number * (20 if kind == "reconnecting" else 1),
                resumed=number * 19 if kind == "reconnecting" else 0,
                requests=number * seconds // 10 if kind == "polling" else 0,
                closes={"4408": number * 3} if kind == "stalled" else {},
            )
        )
    return kinds


def make_processes(seconds: int, rng: random.Random) -> Sequence[ProcessUsage]:
    """Return the use of every process; memory is measured every five seconds."""
    return [
        ProcessUsage(
            name=name,
            pid=4_000 + number,
            is_ours=is_ours,
            cpu=[max(0.0, rng.gauss(cpu, cpu / 8)) for _ in range(seconds + JOINING_S)],
            memory_mib=[
                memory * (1 + 0.1 * second / seconds) if second % 5 == 0 else None
                for second in range(seconds + JOINING_S)
            ],
        )
        for number, (name, is_ours, cpu, memory) in enumerate(PROCESSES)
    ]


def scaled(summary: Summary, times: int) -> Summary:
    """Return the same distribution of ``times`` as many values."""
    return replace(summary, count=summary.count * times)


def make_result(seconds: int = 600, clients: int = 1_000) -> Result:
    """Return the result of one run that passed."""
    outcome = make_outcome(seconds, clients)
    return Result(
        title=f"{clients:,} clients at 900 trades a second",
        command=f"tickthrottle load --clients {clients} --profile 900:{seconds}s",
        machine="Example CPU @ 2.10GHz, 2 cores, 8 GiB; Linux 6.1; Python 3.11.7",
        began_ms=outcome.from_ms - 31_000,
        ended_ms=outcome.to_ms + 12_000,
        window_ms=WINDOW_MS,
        outcome=outcome,
        is_passed=not any(one.is_broken for one in outcome.checks),
    )


def make_broken_result() -> Result:
    """Return a result in which much is wrong, the words of it hostile to a page."""
    hostile = '<script>throw "no"</script>&"\'</script>'
    result = make_result(120, 50)
    outcome = replace(
        result.outcome,
        faults=[f"client 17: KR7005930003 went back {hostile}", "client 9: a gap"],
        books=replace(
            result.outcome.books, problems=[f"partition 2 of {hostile}: 3 missing"]
        ),
        audit=replace(
            result.outcome.audit or Audit(0, 0, 0, ()),
            differences=[f"window 1790000002000: {hostile}"],
            difference_count=41,
        ),
        feeding=replace(result.outcome.feeding, words=hostile, refused={hostile: 3}),
        kinds=[
            replace(one, faults=2 if one.kind == "watch" else 0, unseen=4)
            for one in result.outcome.kinds
        ],
    )
    rules = [parse(text) for text in (*RULES, "lag.p99>0.25s", "cpu.nobody.max>90%")]
    outcome = replace(outcome, checks=check(rules, outcome))
    return replace(
        result, title=hostile, command=hostile, outcome=outcome, is_passed=False
    )


def make_capacity_result() -> Result:
    """Return a search for the highest rate, broken at its last step."""
    rules = [parse("lag.p99>2s")]
    steps = []
    for load in (900, 5_000, 20_000, 50_000, 80_000, 80_000, 65_000, 65_000):
        outcome = make_outcome(24, 200, load)
        p99 = 290 + (load / 1_500) ** 2
        lag_ms = replace(outcome.lag_ms, p99=p99 if load <= 50_000 else p99 + 2_000)
        outcome = replace(outcome, lag_ms=lag_ms)
        steps.append(Step(load, replace(outcome, checks=check(rules, outcome))))
    return replace(
        make_result(120, 200),
        title="Highest rate with lag.p99 within 2 s",
        capacity=Capacity("rate", steps, 50_000, 65_000),
    )


def make_comparison_result() -> Result:
    """Return polling and pushing, the same audience both ways."""
    ways = []
    for name, kind in (("polling every 10 s", "polling"), ("WebSocket", "watch")):
        outcome = make_outcome(60, 200)
        own = [one for one in outcome.kinds if one.kind == kind]
        ways.append(replace(outcome, name=name, kinds=own))
    return replace(
        make_result(120, 200),
        title="The same 200 clients polling, and over WebSocket",
        comparison=ways,
    )
