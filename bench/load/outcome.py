"""PURE: what was measured, put together for the report."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.load import words
from bench.load.judging import Judgement, KindJudgement
from bench.load.percentiles import nearest_rank, summarize
from bench.load.published import PublishedRun
from bench.load.recorder import Recorder
from bench.load.results import (
    PROMPT,
    Audit,
    Books,
    Feeding,
    KindOutcome,
    Outcome,
    ProcessUsage,
    Served,
    Step,
    Windows,
)
from bench.load.usage import Usage
from bench.load.verdict import broken_words

BUSIEST = 3
"""So many processes are named where something gave way."""

Values = Mapping[int, Sequence[float]]
"""Values by the end of the window they belong to."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a stretch came to: windows that end within ``(from_ms, to_ms]``."""

    name: str
    from_ms: float
    to_ms: float
    feeding: Feeding
    books: Books
    audit: Audit | None
    judgement: Judgement
    incidents: Sequence[str] = ()
    """What broke beside what clients saw: parts that ended, holes in the stream."""


def make_outcome(
    measured: Measured, run: PublishedRun, recorder: Recorder, usage: Usage
) -> Outcome:
    """Return what a report shows of a stretch."""
    from_ms, to_ms = measured.from_ms, measured.to_ms
    kinds = measured.judgement.kinds
    prompt = [kinds[kind] for kind in kinds if kind in PROMPT]
    axis = recorder.axis(from_ms, to_ms)
    publish_ms = {
        end_ms: lag_ms for end_ms, lag_ms in run.lags_ms() if from_ms < end_ms <= to_ms
    }
    return Outcome(
        name=measured.name,
        from_ms=from_ms,
        to_ms=to_ms,
        feeding=measured.feeding,
        lag_ms=summarize(_all(one.lags_ms for one in prompt)),
        publish_ms=summarize(publish_ms.values()),
        fanout_ms=summarize(_all(one.fanouts_ms for one in prompt)),
        staleness_ms=summarize(_all(one.staleness_ms for one in prompt)),
        kinds=[_kind_outcome(kind, found) for kind, found in kinds.items()],
        books=measured.books,
        audit=measured.audit,
        faults=[*measured.incidents, *measured.judgement.faults],
        seconds=recorder.seconds(from_ms, to_ms, usage.machine(axis)),
        windows=_windows(measured, run, publish_ms, prompt),
        processes=usage.processes(axis),
    )


def make_step(load: float, outcome: Outcome) -> Step:
    """Return a try of a capacity search, of its checked outcome."""
    broken = broken_words(outcome.checks)
    return Step(
        load=load,
        is_good=not broken,
        lag_p50_ms=outcome.lag_ms.p50,
        lag_p99_ms=outcome.lag_ms.p99,
        publish_p99_ms=outcome.publish_ms.p99,
        fanout_p99_ms=outcome.fanout_ms.p99,
        behind_ms=outcome.feeding.behind_ms.p99,
        broken=broken,
        busiest=_busiest(outcome.processes),
        machine_cpu=_mean(outcome.seconds.machine_cpu),
    )


def make_served(outcome: Outcome) -> Served:
    """Return one way of serving an audience; all of it is of one kind."""
    (kind,) = outcome.kinds
    seconds = (outcome.to_ms - outcome.from_ms) / 1_000
    gateways = [one.cpu for one in outcome.processes if one.name == "gateway"]
    return Served(
        way=outcome.name,
        clients=kind.clients,
        staleness_ms=kind.staleness_ms,
        bytes_per_client_s=kind.bytes / seconds / max(kind.clients, 1),
        requests_per_s=kind.requests / seconds,
        connections_per_s=kind.connections / seconds,
        gateway_cpu=sum(_mean(cpu) or 0.0 for cpu in gateways),
    )


def _kind_outcome(kind: str, found: KindJudgement) -> KindOutcome:
    tally = found.tally
    return KindOutcome(
        kind=kind,
        clients=found.clients,
        lag_ms=summarize(_all([found.lags_ms])),
        staleness_ms=summarize(_all([found.staleness_ms])),
        frames=tally.frames,
        items=tally.items,
        trades=tally.trades,
        bytes=tally.bytes,
        merged_updates=tally.merged_updates,
        merged_windows=tally.merged_windows,
        unseen=found.unseen,
        connections=tally.connections,
        resumed=tally.resumed,
        requests=tally.requests,
        refused=tally.refused,
        closes=dict(tally.closes),
        faults=tally.faults,
    )


def _windows(
    measured: Measured,
    run: PublishedRun,
    publish_ms: Mapping[int, float],
    prompt: Sequence[KindJudgement],
) -> Windows:
    sizes = {end_ms: (rows, trades) for end_ms, rows, trades in run.sizes()}
    offsets = {held.end_ms: held.offset for held in run.windows}
    ends_ms = sorted(publish_ms)
    lags_ms = [one.lags_ms for one in prompt]
    staleness_ms = [one.staleness_ms for one in prompt]
    lags = [_of_window(lags_ms, end_ms) for end_ms in ends_ms]
    stale = [_of_window(staleness_ms, end_ms) for end_ms in ends_ms]
    return Windows(
        end_ms=ends_ms,
        trades=[sizes[end_ms][1] for end_ms in ends_ms],
        rows=[sizes[end_ms][0] for end_ms in ends_ms],
        publish_ms=[publish_ms[end_ms] for end_ms in ends_ms],
        lag_p50_ms=[_rank(values, 500) for values in lags],
        lag_p90_ms=[_rank(values, 900) for values in lags],
        lag_p99_ms=[_rank(values, 990) for values in lags],
        lag_max_ms=[values[-1] if values else None for values in lags],
        merged=[measured.judgement.merged_at[offsets[end_ms]] for end_ms in ends_ms],
        staleness_mean_ms=[_mean(values) for values in stale],
        staleness_p99_ms=[_rank(values, 990) for values in stale],
    )


def _of_window(parts: Iterable[Values], end_ms: int) -> list[float]:
    return sorted(value for part in parts for value in part.get(end_ms, ()))


def _all(parts: Iterable[Values]) -> "array[float]":
    found = array("f")
    for part in parts:
        for values in part.values():
            found.extend(values)
    return found


def _rank(ordered: Sequence[float], per_mille: int) -> float | None:
    return nearest_rank(ordered, per_mille) if ordered else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _busiest(processes: Sequence[ProcessUsage]) -> list[str]:
    means = [(_mean(one.cpu) or 0.0, one.name) for one in processes]
    greatest = sorted(means, reverse=True)[:BUSIEST]
    return [f"{name} {words.cores(share)}" for share, name in greatest if share]
