"""What clients of one kind saw and did, added up. Does no I/O."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts of one kind of clients; ``results.KindOutcome`` says what they mean."""

    frames: int = 0
    items: int = 0
    trades: int = 0
    bytes: int = 0
    merged_updates: int = 0
    merged_windows: int = 0
    connections: int = 0
    resumed: int = 0
    requests: int = 0
    refused: int = 0
    faults: int = 0
    closes: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Take in further counts."""
        self.frames += other.frames
        self.items += other.items
        self.trades += other.trades
        self.bytes += other.bytes
        self.merged_updates += other.merged_updates
        self.merged_windows += other.merged_windows
        self.connections += other.connections
        self.resumed += other.resumed
        self.requests += other.requests
        self.refused += other.refused
        self.faults += other.faults
        self.closes += other.closes


def total(tallies: Iterable[Tally]) -> Tally:
    """Return all of them added up."""
    found = Tally()
    for tally in tallies:
        found.add(tally)
    return found


@dataclass(slots=True)
class CrowdTick:
    """Everything since the tick before; ``connected`` is how many are, by kind.

    ``lags_ms`` has one value for each update that the prompt kinds got, from the end
    of its newest window: for a look while it goes on, not for a report.
    """

    connected: Counter[str] = field(default_factory=Counter)
    seen: Tally = field(default_factory=Tally)
    lags_ms: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, other: "CrowdTick") -> None:
        """Take in those of another process."""
        self.connected += other.connected
        self.seen.add(other.seen)
        self.lags_ms.extend(other.lags_ms)

    @property
    def frames(self) -> int:
        """Frames, and answers to polls."""
        return self.seen.frames

    @property
    def items(self) -> int:
        """Items of updates, snapshots and answers."""
        return self.seen.items

    @property
    def bytes(self) -> int:
        """Payload received."""
        return self.seen.bytes

    @property
    def closes(self) -> Counter[str]:
        """Closes that clients did not ask for, by code."""
        return self.seen.closes

    @property
    def refused(self) -> int:
        """Attempts to connect, and requests, that were refused or failed."""
        return self.seen.refused

    @property
    def faults(self) -> int:
        """Broken promises."""
        return self.seen.faults
