"""What clients saw and did, added up. Pure."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from loadtest.results import ClientTally


def total(tallies: Iterable[ClientTally]) -> ClientTally:
    everything = ClientTally()
    for tally in tallies:
        everything.add(tally)
    return everything


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
        self.connected += other.connected
        self.seen.add(other.seen)
        self.lags_ms.extend(other.lags_ms)
