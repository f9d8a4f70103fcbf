"""What bars, days and spans have to be: plain Python over every trade, no product code.

The rules are those of docs/bars.md, written a second time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

MINUTE_MS = 60_000
Sums = dict[str, Any]


class Entry(NamedTuple):
    """One entry of the log: a trade, or what ``cancels`` one by its number."""

    append_ms: int
    partition: int
    position: int
    isin: str
    time_us: int
    seq: int
    price: str
    size: str
    updates: str | None = None
    cancels: int | None = None
    corrects: int | None = None

    @property
    def where(self) -> tuple[int, int]:
        """Its place in the log."""
        return self.partition, self.position

    @property
    def takes_back(self) -> int | None:
        """The number of the trade that does not stand any more."""
        return self.corrects if self.cancels is None else self.cancels

    def counts_for(self, name: str) -> bool:
        """Say whether it counts for the last price, the range or the volume."""
        return self.updates is None or name in self.updates.split(",")


@dataclass(frozen=True)
class Rules:
    """What the job was told."""

    close_after_ms: int = 1_000
    lateness_ms: int = 3_600_000
    span_ms: int = 60_000
    every_ms: int = 10_000


def bars(
    entries: Iterable[Entry], rules: Rules
) -> tuple[dict[tuple[str, int], Sums], Counter[int]]:
    """Return every bar by instrument and start, and what came too late by partition.

    A trade that is taken back leaves its bar, unless that is final by then.
    """
    groups: dict[tuple[str, int], dict[tuple[int, int], Entry]] = defaultdict(dict)
    revisions: Counter[tuple[str, int]] = Counter()
    too_late: Counter[int] = Counter()
    log = list(entries)
    for entry in log:
        if entry.cancels is not None:
            continue
        place, closed_ms = place_of(entry, rules)
        if entry.append_ms - closed_ms >= rules.lateness_ms:
            too_late[entry.partition] += 1
        else:
            groups[place][entry.where] = entry
            revisions[place] += entry.append_ms >= closed_ms
    for trade, by in taken_back(log):
        place, closed_ms = place_of(trade, rules)
        is_final = by.append_ms - closed_ms >= rules.lateness_ms
        if trade.where in groups[place] and not is_final:
            del groups[place][trade.where]
            revisions[place] += 1
    found = {
        place: {**sums([*trades.values()]), "revision": revisions[place]}
        for place, trades in groups.items()
        if trades or revisions[place]
    }
    return found, too_late


def place_of(entry: Entry, rules: Rules) -> tuple[tuple[str, int], int]:
    """Return the instrument and start of an entry's bar, and when that closes."""
    start_ms = entry.time_us // 1_000 // MINUTE_MS * MINUTE_MS
    return (entry.isin, start_ms), start_ms + MINUTE_MS + rules.close_after_ms


def taken_back(log: list[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield each trade that does not stand in the end, and the entry that says so."""
    standing: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in sorted(log, key=lambda e: (e.append_ms, e.partition, e.position)):
        if entry.takes_back is not None:
            named = standing[entry.isin, entry.takes_back]
            newest = max((one.time_us for one in named), default=None)
            for one in [one for one in named if one.time_us == newest]:
                named.remove(one)
                yield one, entry
        if entry.cancels is None:
            standing[entry.isin, entry.seq].append(entry)


def span(entries: Iterable[Entry], end_ms: int, rules: Rules) -> dict[str, Sums]:
    """Return each instrument's sums of the span that ends at a moment, as listed."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    log = [e for e in entries if e.append_ms < end_ms + rules.close_after_ms]
    gone = {trade.where for trade, _ in taken_back(log)}
    for entry in (e for e in log if e.cancels is None and e.where not in gone):
        time_us = min(entry.time_us, entry.append_ms * 1_000)
        time_ms = time_us // 1_000
        if end_ms - rules.span_ms <= time_ms < end_ms:
            groups[entry.isin].append(entry._replace(time_us=time_us))
    return {isin: sums(trades) for isin, trades in groups.items()}


def bursts(
    entries: Iterable[Entry], gap_ms: int, least: int
) -> list[tuple[str, int, int, Sums]]:
    """Return every burst: instrument, first and last millisecond, sums.

    Of trades that come within a gap of when they were made: then it does not matter in
    which batch they were read.
    """
    groups: dict[str, list[list[Entry]]] = defaultdict(list)
    for entry in sorted(entries, key=lambda e: (e.time_us, e.seq, e.position)):
        runs = groups[entry.isin]
        if not runs or entry.time_us - runs[-1][-1].time_us > gap_ms * 1_000:
            runs.append([])
        runs[-1].append(entry)
    found = []
    for isin, runs in groups.items():
        for run in runs:
            ends = run[0].time_us // 1_000, run[-1].time_us // 1_000
            found.append((isin, *ends, sums(run)))
    return [burst for burst in found if burst[3]["trades"] >= least]


def sums(trades: list[Entry]) -> Sums:
    """Return what a bar of these trades says."""
    ordered = sorted(trades, key=lambda t: (t.time_us, t.seq, t.position))
    prices = [Fraction(trade.price) for trade in ordered if trade.counts_for("last")]
    extremes = [Fraction(trade.price) for trade in ordered if trade.counts_for("range")]
    summed = [trade for trade in ordered if trade.counts_for("volume")]
    return {
        "open": prices[0] if prices else None,
        "high": max(extremes, default=None),
        "low": min(extremes, default=None),
        "close": prices[-1] if prices else None,
        "volume": sum(Fraction(trade.size) for trade in summed),
        "value": sum(Fraction(t.price) * Fraction(t.size) for t in summed),
        "trades": len(ordered),
    }


def days(
    found: dict[tuple[str, int], Sums], day_of: Iterable[tuple[int, int]]
) -> Iterator[tuple[tuple[str, int], Sums]]:
    """Yield the sums of each instrument and day; ``day_of`` are the days' bounds."""
    for isin in sorted({isin for isin, _ in found}):
        for start_ms, end_ms in day_of:
            parts = [
                bar
                for (other, at_ms), bar in sorted(found.items())
                if other == isin and start_ms <= at_ms < end_ms
            ]
            if parts:
                yield (
                    (isin, start_ms),
                    {
                        "open": next(there(parts, "open"), None),
                        "close": next(there(parts[::-1], "close"), None),
                        "high": max(there(parts, "high"), default=None),
                        "low": min(there(parts, "low"), default=None),
                        **{
                            name: sum(part[name] for part in parts)
                            for name in ("volume", "value", "trades", "revision")
                        },
                    },
                )


def fraction(number: Decimal | None) -> Fraction | None:
    """Return a number of a bar as the oracle has it."""
    return None if number is None else Fraction(number)


def there(parts: list[Sums], name: str) -> Iterator[Fraction]:
    """Yield what parts say under a name, where they say something."""
    return (part[name] for part in parts if part[name] is not None)
