"""What a load test has found: the contract between the run and its reports.

Everything here is written to the JSON report as it stands. Times named ``_ms`` are
milliseconds, points in time milliseconds since 1970 UTC; a series has one value for
each point of its axis, None where there was nothing to measure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

import orjson

VERSION = 2

Points: TypeAlias = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Summary:
    """A distribution: nearest-rank percentiles; all None where ``count`` is 0."""

    count: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class Feeding:
    """How the trades came in: an open loop, so being behind is a finding."""

    words: str
    """What was fed, for people: ``simulated market, 2,879 instruments, 900/s``."""
    acknowledged: int
    seconds: float
    behind_ms: Summary
    """From a trade's due time to its acknowledgement, one sample for each append."""
    retried: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    dropped_at_cap: int = 0


@dataclass(slots=True)
class ClientTally:
    """What clients of one kind saw and did, counted."""

    frames: int = 0
    items: int = 0
    trades: int = 0
    """Trades that the items of updates stand for."""
    bytes: int = 0
    """Payload received (of HTTP: heads and bodies)."""
    merged_updates: int = 0
    """Updates that stand for several windows."""
    merged_windows: int = 0
    """Windows that such updates stand for."""
    connections: int = 0
    """Connections made, the first ones included."""
    resumed: int = 0
    requests: int = 0
    refused: int = 0
    """Attempts to connect, and requests, that were refused or failed."""
    faults: int = 0
    """Broken promises; ``Outcome.faults`` has examples."""
    closes: Counter[str] = field(default_factory=Counter)
    """Closes by code that the client did not ask for; ``lost`` is one without."""

    def add(self, other: "ClientTally") -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def since(self, before: "ClientTally") -> "ClientTally":
        """Return what was added since it was as it was ``before``."""
        return ClientTally(*(getattr(self, n) - getattr(before, n) for n in COUNTS))


COUNTS = tuple(each.name for each in fields(ClientTally))


@dataclass(slots=True, kw_only=True)
class KindOutcome(ClientTally):
    """What all clients of one kind saw, within the measured time."""

    kind: str
    clients: int
    lag_ms: Summary
    """From a window's end until the client had it, for every window with news for the
    client: one that came merged, late or only after a reconnect counts from its own
    end, one that never came counts up to the end of the run.
    """
    staleness_ms: Summary
    """At random moments, for a random key of a random client: for how long a newer
    trade than the one shown has been in the log; 0 while there is none.
    """
    unseen: int
    """Due windows that had not come at the end."""


@dataclass(frozen=True, slots=True)
class BookMovement:
    """The ledger's movement over the run, and whether it balances."""

    read: int
    published: int
    superseded: int
    stale: int
    refused: Mapping[str, int]
    windows: int
    problems: Sequence[str]
    """Empty if the books balance."""
    not_last: int = 0


@dataclass(frozen=True, slots=True)
class Audit:
    """What was compared with the trade log itself, read anew after the run."""

    trades: int
    windows: int
    instruments: int
    differences: Sequence[str]
    """The first few, in words; empty if there are none."""
    difference_count: int = 0
    notes: Sequence[str] = ()
    """What could not be compared, and why, in words; empty if all was."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process over the run; its series are along ``Seconds.at_ms``."""

    name: str
    pid: int
    is_ours: bool
    """Whether it belongs to the load test and not to what is tested."""
    cpu: Points
    """Share of one core."""
    memory_mib: Points


@dataclass(frozen=True, slots=True)
class Seconds:
    """Series by the second; ``at_ms`` is the axis."""

    at_ms: Sequence[float]
    append_rate: Points
    behind_ms: Points
    """Longest from due to acknowledged within the second."""
    clients: Points
    """Connected."""
    frame_rate: Points
    """Of the last window, as are items and bytes."""
    item_rate: Points
    byte_rate: Points
    machine_cpu: Points
    """All processes of the machine, in cores."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Series by window; ``end_ms`` is the axis."""

    end_ms: Sequence[int]
    trades: Points
    rows: Points
    publish_ms: Points
    """From the window's end until it was published."""
    lag_p50_ms: Points
    """Of the kinds that read promptly (``PROMPT``)."""
    lag_p90_ms: Points
    lag_p99_ms: Points
    lag_max_ms: Points
    merged: Points
    """Prompt clients that got this window merged with others."""
    staleness_mean_ms: Points
    staleness_p99_ms: Points


PROMPT = ("watch", "compact", "market", "sse")
"""Kinds of clients that read as fast as they can and stay: the lag is theirs."""


@dataclass(frozen=True, slots=True)
class Check:
    """One threshold, and what was found."""

    rule: str
    """As given: ``lag.p99>250ms``."""
    found: float | None
    text: str
    """What was found, for people: ``312 ms``."""
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """One stretch of load, measured from ``from_ms`` to ``to_ms``."""

    name: str
    from_ms: float
    to_ms: float
    feeding: Feeding
    lag_ms: Summary
    """Of the kinds in ``PROMPT``."""
    publish_ms: Summary
    """From a window's end until it was published."""
    fanout_ms: Summary
    """From publish to receipt, kinds in ``PROMPT``."""
    staleness_ms: Summary
    """Kinds in ``PROMPT``."""
    kinds: Sequence[KindOutcome]
    books: BookMovement
    audit: Audit | None
    """None where the log was not read again."""
    faults: Sequence[str]
    """Broken promises in words, the first few."""
    seconds: Seconds
    windows: Windows
    processes: Sequence[ProcessUsage]
    checks: Sequence[Check] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One try of a capacity search: a load, trades a second or clients."""

    load: float
    outcome: Outcome

    @property
    def is_good(self) -> bool:
        return not any(check.is_broken for check in self.outcome.checks)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Where a threshold breaks when one thing is raised."""

    raised: Literal["rate", "clients"]
    steps: Sequence[Step]
    last_good: float | None
    first_bad: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """All that a report shows."""

    title: str
    command: str
    machine: str
    began_ms: float
    ended_ms: float
    window_ms: int
    outcome: Outcome
    """The measured stretch; of a search or comparison, all of it."""
    capacity: Capacity | None = None
    comparison: Sequence[Outcome] = ()
    """The same audience served in several ways, each named by its way."""
    is_passed: bool = True
    version: int = VERSION


def encode(value: Any) -> bytes:
    """Return a result, or a part of one, as JSON."""
    # Series may be arrays; JSON knows lists.
    return orjson.dumps(value, default=list)
