"""What was measured, put together for the report. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from loadtest.figures.percentiles import mean_of, nearest_rank, summarize
from loadtest.judge.judging import Judgement, KindJudgement
from loadtest.judge.published_run import HeldWindow, PublishedRun
from loadtest.report.recorder import Recorder
from loadtest.results import (
    COUNTS,
    PROMPT,
    Audit,
    BookMovement,
    Feeding,
    KindOutcome,
    Outcome,
    Windows,
)
from loadtest.system.usage import Usage

Values = Mapping[int, Sequence[float]]
"""Values by the end of the window they belong to."""


def make_outcome(
    *,
    name: str,
    from_ms: float,
    to_ms: float,
    feeding: Feeding,
    books: BookMovement,
    audit: Audit | None,
    judgement: Judgement,
    incidents: Sequence[str],
    run: PublishedRun,
    recorder: Recorder,
    usage: Usage,
) -> Outcome:
    """Return what a report shows of a stretch: windows within ``(from_ms, to_ms]``.

    ``incidents``: what broke beside what clients saw, parts that ended, holes in the
    stream.
    """
    kinds = judgement.kinds
    prompt = [kinds[kind] for kind in kinds if kind in PROMPT]
    axis = recorder.axis(from_ms, to_ms)
    published = {h.end_ms: h for h in run.windows if from_ms < h.end_ms <= to_ms}
    return Outcome(
        name=name,
        from_ms=from_ms,
        to_ms=to_ms,
        feeding=feeding,
        lag_ms=summarize(_all(kind.lags_ms for kind in prompt)),
        publish_ms=summarize(held.lag_ms for held in published.values()),
        fanout_ms=summarize(_all(kind.fanouts_ms for kind in prompt)),
        staleness_ms=summarize(_all(kind.staleness_ms for kind in prompt)),
        kinds=[_kind_outcome(*of_kind) for of_kind in kinds.items()],
        books=books,
        audit=audit,
        faults=[*incidents, *judgement.faults],
        seconds=recorder.seconds(from_ms, to_ms, usage.machine(axis)),
        windows=_windows(sorted(published.items()), prompt, judgement.merged_at),
        processes=usage.processes(axis),
    )


def _kind_outcome(kind: str, judged: KindJudgement) -> KindOutcome:
    return KindOutcome(
        kind=kind,
        clients=judged.clients,
        lag_ms=summarize(_all([judged.lags_ms])),
        staleness_ms=summarize(_all([judged.staleness_ms])),
        unseen=judged.unseen,
        **{name: getattr(judged.tally, name) for name in COUNTS},
    )


def _windows(
    published: Sequence[tuple[int, HeldWindow]],
    prompt: Sequence[KindJudgement],
    merged_at: Counter[int],
) -> Windows:
    ends_ms = [end_ms for end_ms, _ in published]
    rows = [held.rows() for _, held in published]
    lags_ms = [one.lags_ms for one in prompt]
    staleness_ms = [one.staleness_ms for one in prompt]
    lags = [_of_window(lags_ms, end_ms) for end_ms in ends_ms]
    stale = [_of_window(staleness_ms, end_ms) for end_ms in ends_ms]
    return Windows(
        end_ms=ends_ms,
        trades=[sum(row.trades for row in of_window) for of_window in rows],
        rows=[len(of_window) for of_window in rows],
        publish_ms=[held.lag_ms for _, held in published],
        lag_p50_ms=[_rank(values, 500) for values in lags],
        lag_p90_ms=[_rank(values, 900) for values in lags],
        lag_p99_ms=[_rank(values, 990) for values in lags],
        lag_max_ms=[values[-1] if values else None for values in lags],
        merged=[merged_at[held.offset] for _, held in published],
        staleness_mean_ms=[mean_of(values) for values in stale],
        staleness_p99_ms=[_rank(values, 990) for values in stale],
    )


def _of_window(parts: Iterable[Values], end_ms: int) -> list[float]:
    return sorted(value for part in parts for value in part.get(end_ms, ()))


def _all(parts: Iterable[Values]) -> "array[float]":
    everything = array("f")
    for part in parts:
        for values in part.values():
            everything.extend(values)
    return everything


def _rank(ordered: Sequence[float], per_mille: int) -> float | None:
    return nearest_rank(ordered, per_mille) if ordered else None
