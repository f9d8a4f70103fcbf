"""What clients of one kind saw and did, added up. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class ClientTally:
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

    def add(self, other: "ClientTally") -> None:
        """Take in further counts."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def since(self, before: "ClientTally") -> "ClientTally":
        """Return what was added since it was as it was ``before``."""
        return ClientTally(*(getattr(self, n) - getattr(before, n) for n in COUNTS))


COUNTS = tuple(each.name for each in fields(ClientTally))


def total(tallies: Iterable[ClientTally]) -> ClientTally:
    """Return all of them added up."""
    found = ClientTally()
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
    seen: ClientTally = field(default_factory=ClientTally)
    lags_ms: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, other: "CrowdTick") -> None:
        """Take in those of another process."""
        self.connected += other.connected
        self.seen.add(other.seen)
        self.lags_ms.extend(other.lags_ms)
