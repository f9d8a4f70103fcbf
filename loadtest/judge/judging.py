"""What only the whole run can tell: lag, staleness, gaps, final values. Pure.

Coordinated omission is avoided: every window with news for a client counts from its own
end, also while the client was away or read slowly, and one that never came counts up
to the end of the run.
"""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias

from loadtest.client_mix import Kind
from loadtest.judge.checker import NO_ITEM, Checker, HeldInstrument
from loadtest.judge.reference import Changes, Reference
from loadtest.results import ClientTally

Hole: TypeAlias = tuple[int, int]
"""Offsets ``(after, up to]`` that a gateway repaired without knowing the trades."""

FAULTS_KEPT = 50


class Seen(NamedTuple):
    """One client and what it saw."""

    kind: Kind
    name: str
    checker: Checker


@dataclass(slots=True)
class KindJudgement:
    """All clients of one kind; arrays are by the end of the window they belong to.

    ``lags_ms`` and ``fanouts_ms`` have one value for each client and due window:
    from its end, and from its publishing, to receipt. ``staleness_ms`` belongs to
    moments within the window.
    """

    clients: int = 0
    unseen: int = 0
    tally: ClientTally = field(default_factory=ClientTally)
    lags_ms: "dict[int, array[float]]" = field(default_factory=dict)
    fanouts_ms: "dict[int, array[float]]" = field(default_factory=dict)
    staleness_ms: "dict[int, array[float]]" = field(default_factory=dict)

    def add(self, other: "KindJudgement") -> None:
        self.clients += other.clients
        self.unseen += other.unseen
        self.tally.add(other.tally)
        for own, more in (
            (self.lags_ms, other.lags_ms),
            (self.fanouts_ms, other.fanouts_ms),
            (self.staleness_ms, other.staleness_ms),
        ):
            for end_ms, values in more.items():
                own.setdefault(end_ms, array("f")).extend(values)


@dataclass(slots=True)
class Judgement:
    """All clients, and what broke: ``faults`` has the first ones in words.

    ``merged_at`` says how often a prompt client got the window of an offset merged.
    """

    kinds: dict[Kind, KindJudgement] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    merged_at: Counter[int] = field(default_factory=Counter)

    def kind(self, kind: Kind) -> KindJudgement:
        return self.kinds.setdefault(kind, KindJudgement())

    def fault(self, kind: Kind, text: str) -> None:
        self.kind(kind).tally.faults += 1
        self.keep([text], 1)

    def add(self, other: "Judgement") -> None:
        for kind, found in other.kinds.items():
            self.kind(kind).add(found)
        self.merged_at.update(other.merged_at)
        self.keep(other.faults, other.fault_count)

    def keep(self, texts: Sequence[str], count: int) -> None:
        """Note so many broken promises; keep the first words."""
        self.faults.extend(texts[: FAULTS_KEPT - len(self.faults)])
        self.fault_count += count


@dataclass(frozen=True, slots=True)
class Span:
    """The measured time; what never came counts up to ``ended_ms``."""

    from_ms: float
    to_ms: float
    ended_ms: float

    def has(self, moment_ms: float) -> bool:
        return self.from_ms <= moment_ms <= self.to_ms


def judge_all(
    seen: Sequence[Seen],
    reference: Reference,
    span: Span,
    holes: Sequence[Hole],
    samples: int,
    chance: Random,
) -> Judgement:
    """Judge clients by what was published.

    ``samples`` moments of each window are looked at for the staleness of each kind.
    """
    judgement = Judgement()
    ends_ms = {w.end_ms for w in reference.windows.values() if span.has(w.end_ms)}
    every = sorted({o for isin in reference.instruments.values() for o in isin.offsets})
    for kind, name, checker in seen:
        found = judgement.kind(kind)
        found.clients += 1
        found.tally.faults += checker.fault_count
        texts = [f"{name}: {text}" for text in checker.faults]
        judgement.keep(texts, checker.fault_count)
        if checker.epoch is None:
            continue
        if checker.epoch != reference.epoch:
            judgement.fault(
                kind,
                f"{name}: is in epoch {checker.epoch}, "
                f"published was in {reference.epoch}",
            )
            continue
        for text in wrong_values(checker, reference, holes, kind != "polling"):
            judgement.fault(kind, f"{name}: {text}")
        due = due_offsets(checker, reference, every)
        _note_lags(found, checker, reference, due, span)
    for kind, found in judgement.kinds.items():
        checkers = [s.checker for s in seen if s.kind == kind and s.checker.offsets]
        if checkers:
            _sample(found, checkers, reference, sorted(ends_ms), samples, chance)
    return judgement


def due_offsets(
    checker: Checker, reference: Reference, every: Sequence[int]
) -> Sequence[int]:
    """Return the windows with news for a client since it joined, in order.

    ``every`` are those with news for anybody.
    """
    if not checker.offsets:
        return ()
    joined = checker.offsets[0]
    if checker.keys is None:
        return every[bisect_right(every, joined) :]
    due: set[int] = set()
    for isin in checker.keys:
        offsets = reference.changes(isin).offsets
        due.update(offsets[bisect_right(offsets, joined) :])
    return sorted(due)


def _note_lags(
    found: KindJudgement,
    checker: Checker,
    reference: Reference,
    due: Sequence[int],
    span: Span,
) -> None:
    offsets, times_ms = checker.offsets, checker.times_ms
    place, count = 0, len(offsets)
    for offset in due:
        end_ms, published_ms = reference.windows[offset]
        if not span.from_ms <= end_ms <= span.to_ms:
            continue
        while place < count and offsets[place] < offset:
            place += 1
        if place < count:
            at_ms = times_ms[place]
        else:
            at_ms = span.ended_ms
            found.unseen += 1
        lags_ms = found.lags_ms.get(end_ms)
        if lags_ms is None:
            lags_ms = found.lags_ms[end_ms] = array("f")
            found.fanouts_ms[end_ms] = array("f")
        lags_ms.append(at_ms - end_ms)
        found.fanouts_ms[end_ms].append(at_ms - published_ms)


def staleness_ms(
    checker: Checker, changes: Changes, reference: Reference, moment_ms: float
) -> float | None:
    """Return for how long a newer trade than the one shown has been in the log.

    None where the client had not joined at that moment.
    """
    place = bisect_right(checker.times_ms, moment_ms)
    if not place:
        return None
    following = changes.after_late(changes.place(checker.offsets[place - 1]))
    if following == len(changes):
        return 0.0
    return max(0.0, moment_ms - reference.first_ms(changes, following))


def _sample(
    found: KindJudgement,
    checkers: Sequence[Checker],
    reference: Reference,
    ends_ms: Iterable[int],
    samples: int,
    chance: Random,
) -> None:
    everything = sorted(reference.instruments)
    keys = [everything if c.keys is None else sorted(c.keys) for c in checkers]
    for end_ms in ends_ms:
        values = array("f")
        for _ in range(samples):
            moment_ms = end_ms - chance.random() * reference.window_ms
            number = int(chance.random() * len(checkers))
            if not keys[number]:
                continue
            isin = keys[number][int(chance.random() * len(keys[number]))]
            value = staleness_ms(
                checkers[number], reference.changes(isin), reference, moment_ms
            )
            if value is not None:
                values.append(value)
        found.staleness_ms[end_ms] = values


def wrong_values(
    checker: Checker, reference: Reference, holes: Sequence[Hole], counts_trades: bool
) -> list[str]:
    """Return what is wrong with what a client holds at its offset, key by key.

    Of each key: the newest trade published up to there, and for how many trades the
    items since its snapshot stand, which tells that none was left out or came twice.
    """
    if not checker.is_whole:
        return []
    keys: Iterable[str] = checker.keys or sorted(
        checker.held.keys() | reference.instruments.keys()
    )
    found = []
    # What was published before the reference begins cannot be counted.
    known_from = min(reference.windows, default=0) - 1
    for isin in keys:
        changes, known = reference.changes(isin), checker.held.get(isin)
        count = changes.place(checker.offset)
        if known is None:
            if count:
                text = f"{isin} never came, published at {changes.offsets[count - 1]}"
                found.append(text)
            continue
        end = _find_value(known, changes, count)
        if end is None:
            _, time_us, seq, price, _ = known.item
            shown = f"time {time_us}, seq {seq}, price {price}"
            text = f"{isin} shows {shown} at offset {checker.offset}"
            if count:
                time_us, seq = changes.version(count - 1)
                text += (
                    f", published was time {time_us}, seq {seq}, price "
                    f"{changes.prices[count - 1]}, at {changes.offsets[count - 1]}"
                )
            found.append(text)
        elif counts_trades and known.base >= known_from:
            begins = _find_base(known, changes)
            if begins and reference.is_in_parts:
                # The trades of a row that was held back come with the next window,
                # the row itself may have come in a snapshot before.
                begins = list(range(changes.place(known.base), begins[-1] + 1))
            wrong = _wrong_count(known, changes, (count, end), begins, holes)
            if wrong is not None:
                found.append(f"{isin} at offset {checker.offset}: {wrong}")
    return found


def _find_value(known: HeldInstrument, changes: Changes, count: int) -> int | None:
    """Return how many changes have been shown: ``count``, or more if it is ahead.

    A piece of a snapshot, and a part of a window, may be newer than its offset.
    None: what is held is none of what it may be.
    """
    if count == 0:
        # Nothing was published of it in this run, up to here.
        if not changes or _version(known) < changes.version(0):
            return 0
    elif _is_at(known, changes, count - 1):
        return changes.after_late(count)
    for place in range(count, len(changes)):
        if _is_at(known, changes, place):
            return changes.after_late(place + 1)
    if count == 0 and _version(known) == changes.version(0):
        return 0
    return None


def _wrong_count(
    known: HeldInstrument,
    changes: Changes,
    ends: tuple[int, int],
    begins: Sequence[int],
    holes: Sequence[Hole],
) -> str | None:
    """Say what is wrong with the trades counted, if they are of no changes between any
    of the ``begins`` and the ``ends``.
    """
    count, end = ends
    if not begins:
        return f"the value it was sent at offset {known.base} was not published then"
    sums = changes.sums
    least = [max(0, sums[count] - sums[begin]) for begin in begins]
    for begin, low in zip(begins, least, strict=True):
        if low <= known.trades <= max(low, sums[end] - sums[begin]):
            return None
    missed = sum(
        changes.trades_between(max(after, known.base), up_to)
        for after, up_to in holes
        if up_to > known.base
    )
    if known.trades <= max(least) and known.trades + missed >= min(least):
        return None
    return (
        f"items stand for {known.trades} trades since offset {known.base}, "
        f"published were {least[0]}"
    )


def _find_base(known: HeldInstrument, changes: Changes) -> list[int]:
    """Return after how many changes the counting may have begun.

    Mostly one number: but equal versions may have been published twice.
    """
    first = changes.place(known.base)
    if known.base_item is NO_ITEM:
        return [] if first else [0]
    base = known.base_item[1:3]
    found = []
    if first == 0:
        if not changes or base <= changes.version(0):
            found.append(0)
    elif base == changes.version(first - 1):
        found.append(first)
    elif base < changes.version(first - 1):
        return []
    for place in range(first, len(changes)):
        version = changes.version(place)
        if version > base:
            break
        if version == base:
            found.append(place + 1)
    return found


def _version(known: HeldInstrument) -> tuple[int, int]:
    return known.item[1:3]


def _is_at(known: HeldInstrument, changes: Changes, place: int) -> bool:
    return (
        changes.version(place) == _version(known)
        and known.item[3] == changes.prices[place]
    )
