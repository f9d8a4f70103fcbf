"""A made-up result of a load test, plausible in every part."""

from collections import Counter
from dataclasses import replace
from itertools import cycle, islice

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
RULES = ("lag.p99>1s", "staleness.p99>2.5s", "feed.behind.p99>100ms")
SHARES = {"watch": 0.8, "market": 0.05, "sse": 0.05, "slow": 0.04, "stalled": 0.01}
SHARES |= {"reconnecting": 0.03, "polling": 0.02}
TIMES_AS_LATE = {"slow": 12.0, "stalled": 80.0, "polling": 20.0}
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


def spread(around_ms: float) -> Summary:
    """Return a distribution with a long tail around a time."""
    return summarize(around_ms * (0.5 + 1.5 * (n / 1_000) ** 4) for n in range(1_000))


def varied(value: float, count: int) -> list[float]:
    return list(islice(cycle((value, value * 1.1, value * 0.9)), count))


def make_outcome(
    seconds: int = 600, clients: int = 1_000, rate: float = 900.0
) -> Outcome:
    """Return a run that held: no fault, books that balance."""
    windows = make_windows(seconds * 1_000 // WINDOW_MS, rate)
    read, published = round(rate * seconds), len(windows.end_ms) * 500
    outcome = Outcome(
        name="load",
        from_ms=BEGAN_MS,
        to_ms=BEGAN_MS + seconds * 1_000,
        feeding=Feeding(
            words=f"simulated market, 2,879 instruments, {rate:,.0f}/s",
            acknowledged=read,
            seconds=seconds,
            behind_ms=spread(4),
        ),
        lag_ms=spread(200),
        publish_ms=spread(150),
        fanout_ms=spread(20),
        staleness_ms=spread(800),
        kinds=make_kinds(clients, seconds),
        books=BookMovement(
            read=read,
            published=published,
            superseded=read - published - 300,
            stale=259,
            refused={"price": 40, "isin": 1},
            windows=len(windows.end_ms),
            problems=(),
        ),
        audit=Audit(read, len(windows.end_ms), 2_731, ()),
        faults=(),
        seconds=make_seconds(seconds, clients, rate),
        windows=windows,
        processes=[
            ProcessUsage(
                name=name,
                pid=4_000 + number,
                is_ours=is_ours,
                cpu=varied(cpu, seconds),
                memory_mib=[None if s % 5 else memory + s for s in range(seconds)],
            )
            for number, (name, is_ours, cpu, memory) in enumerate(PROCESSES)
        ],
    )
    return replace(outcome, checks=check(map(parse, RULES), outcome))


def make_seconds(seconds: int, clients: int, rate: float) -> Seconds:
    return Seconds(
        at_ms=[BEGAN_MS + (second + 1) * 1_000 for second in range(seconds)],
        append_rate=varied(rate, seconds),
        behind_ms=varied(5, seconds),
        clients=[clients] * seconds,
        frame_rate=varied(clients / 2, seconds),
        item_rate=varied(clients * 5, seconds),
        byte_rate=varied(clients * 700, seconds),
        machine_cpu=varied(1.75, seconds),
    )


def make_windows(count: int, rate: float) -> Windows:
    return Windows(
        end_ms=[int(BEGAN_MS) + (step + 1) * WINDOW_MS for step in range(count)],
        trades=varied(rate * 2, count),
        rows=varied(500, count),
        publish_ms=varied(150, count),
        lag_p50_ms=varied(170, count),
        lag_p90_ms=varied(190, count),
        lag_p99_ms=varied(220, count),
        lag_max_ms=varied(250, count),
        merged=[0.0] * count,
        staleness_mean_ms=varied(540, count),
        staleness_p99_ms=varied(2_120, count),
    )


def make_kinds(clients: int, seconds: int) -> list[KindOutcome]:
    """Return what each kind of client saw; only stalled ones were closed."""
    kinds = []
    for kind, share in SHARES.items():
        number = max(1, round(clients * share))
        late = TIMES_AS_LATE.get(kind, 1.0)
        frames = number * seconds // 2
        items = frames * (480 if kind == "market" else 10)
        kinds.append(
            KindOutcome(
                kind=kind,
                clients=number,
                lag_ms=spread(200 * late),
                staleness_ms=spread(800 * late**0.5),
                frames=frames,
                items=items,
                trades=items * 3,
                bytes=frames * 120 + items * 95,
                merged_windows=frames if kind in ("slow", "stalled") else 0,
                unseen=number * 20 if kind == "stalled" else 0,
                connections=number,
                requests=number * seconds // 10 if kind == "polling" else 0,
                closes=Counter({"4408": number * 3} if kind == "stalled" else {}),
            )
        )
    return kinds


def make_result(seconds: int = 600, clients: int = 1_000) -> Result:
    outcome = make_outcome(seconds, clients)
    return Result(
        title=f"{clients:,} clients at 900 trades a second",
        command=f"tickthrottle load --clients {clients} --profile 900:{seconds}s",
        machine="Example CPU @ 2.10GHz, 2 cores, 8 GiB; Linux 6.1; Python 3.11.7",
        began_ms=outcome.from_ms - 31_000,
        ended_ms=outcome.to_ms + 12_000,
        window_ms=WINDOW_MS,
        outcome=outcome,
        is_passed=not any(each.is_broken for each in outcome.checks),
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
        audit=Audit(9, 1, 1, [f"window 1790000002000: {hostile}"], 41),
        feeding=replace(result.outcome.feeding, words=hostile, refused={hostile: 3}),
        kinds=[
            replace(kind, faults=2 if kind.kind == "watch" else 0, unseen=4)
            for kind in result.outcome.kinds
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
    for load in (900, 20_000, 50_000, 80_000, 80_000, 65_000, 65_000):
        outcome = make_outcome(24, 200, load)
        lag_ms = replace(outcome.lag_ms, p99=1_400 if load <= 50_000 else 3_400)
        outcome = replace(outcome, lag_ms=lag_ms)
        steps.append(Step(load, replace(outcome, checks=check(rules, outcome))))
    return replace(
        make_result(120, 200),
        title="Highest rate with lag.p99 within 2 s",
        capacity=Capacity("rate", steps, 50_000, 65_000),
    )


def make_comparison_result() -> Result:
    ways = []
    for name, kind in (("polling every 10 s", "polling"), ("WebSocket", "watch")):
        outcome = make_outcome(60, 200)
        own = [each for each in outcome.kinds if each.kind == kind]
        ways.append(replace(outcome, name=name, kinds=own))
    return replace(
        make_result(120, 200),
        title="The same 200 clients polling, and over WebSocket",
        comparison=ways,
    )
