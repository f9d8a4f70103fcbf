"""Figures of addresses that the workers of a gateway keep together. Pure.

They lie in memory that all workers see, and nothing is locked: of counts each worker
changes its own row only, and a moment is one write. An address has one cell of each
row, found with a secret key: two addresses share one once in 65,536 times, and nobody
can choose whose.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Protocol, TypeAlias

CELLS = 65_536

KNOWN_ADDRESSES = 1_024
"""Addresses whose cell is remembered: each connection asks several times."""


class Cells(Protocol):
    """Numbers in a row: an array, of this process or shared by several."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...
    def __setitem__(self, index: int, value: Any, /) -> None: ...


Allocate: TypeAlias = Callable[[str, int], Cells]
"""Makes an array of zeros of a typecode, as ``multiprocessing.RawArray`` does."""


@lru_cache(maxsize=KNOWN_ADDRESSES)
def cell_of(key: bytes, address: str) -> int:
    """Return an address's cell."""
    name = address.encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(name, digest_size=2, key=key).digest())


class Tally:
    """How many of something there are, in all and of each address.

    What this worker counts goes to the row ``worker``; what is asked for is the sum of
    all rows, of which ``counts`` has one or more.
    """

    WIDTH = 1 + CELLS

    def __init__(
        self, counts: Cells | None = None, key: bytes = b"", worker: int = 0
    ) -> None:
        self._counts = allocate("i", self.WIDTH) if counts is None else counts
        self._key = key or token_bytes(16)
        self._first = worker * self.WIDTH

    @property
    def total(self) -> int:
        """How many there are in all."""
        return self._sum(0)

    @property
    def own(self) -> int:
        """How many of them this worker has counted."""
        count: int = self._counts[self._first]
        return count

    def of(self, address: str) -> int:
        """Return how many there are of an address."""
        return self._sum(1 + cell_of(self._key, address))

    def add(self, address: str, number: int) -> None:
        """Count some in, or out with a number below 0."""
        cell = 1 + cell_of(self._key, address)
        self._counts[self._first] += number
        self._counts[self._first + cell] += number

    def _sum(self, cell: int) -> int:
        counts = self._counts
        return sum(counts[i] for i in range(cell, len(counts), self.WIDTH))


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker's place in its gateway, and the memory that it shares with the others.

    Counts and ``counters`` have a row for each worker, ``counters`` one more at the
    end for those that have died. Moments are seconds of a clock that does not go back.
    Metrics are kept under ``name``, which stays when a worker dies and begins again.
    ``beats`` and ``lost_ms`` have a place for each worker: ``gateway.workers.pulse``.
    """

    name: str
    worker: int
    workers: int
    key: bytes
    streams: Cells
    connections: Cells
    request_moments: Cells
    refusal_moments: Cells
    work_moments: Cells
    counters: Cells
    beats: Cells
    lost_ms: Cells

    def tally(self, counts: Cells) -> Tally:
        """Count in this worker's row of ``streams`` or ``connections``."""
        return Tally(counts, self.key, self.worker)


def allocate(typecode: str, size: int) -> Cells:
    """Make an array of zeros for a process alone."""
    return array(typecode, bytes(array(typecode).itemsize * size))


def take_seat(
    counters: int, workers: int = 1, make: Allocate = allocate, name: str = ""
) -> Seat:
    """Make the memory for so many workers, and return the first one's place."""
    counts = workers * Tally.WIDTH
    return Seat(
        name,
        0,
        workers,
        token_bytes(16),
        streams=make("i", counts),
        connections=make("i", counts),
        request_moments=make("d", CELLS),
        refusal_moments=make("d", CELLS),
        work_moments=make("d", CELLS),
        counters=make("q", (workers + 1) * counters),
        beats=make("q", workers),
        lost_ms=make("q", workers),
    )
