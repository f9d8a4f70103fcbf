"""How an archive says how far it is: one field of a hash in Redis. Pure.

This module is a contract. Nothing depends on it but what operators are shown: the
position that an archive goes on from is what it finds stored.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import orjson

from throttle.contract.lateness import LATE_AFTER_WINDOWS

MOST_UNKNOWN = 20
"""This many instruments without a master row are named."""


MOST_DAMAGED = 20
"""This many damaged segments are named, the newest."""


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """One archive: where it stores, how far it is, and what it has counted.

    ``window`` is the end of the newest window stored, 0 before the first;
    ``bar_number`` and ``status_number`` the newest entries of those logs. Counts are
    since the process began, ``stored_bytes`` of all that is stored. ``problem`` says
    why nothing can be stored now, ``tidy_problem`` why nothing can be merged or
    removed. ``damaged_segments`` cannot be read and were set aside; ``damaged`` are
    their paths. ``is_stopped``: it was told to end.
    """

    destination: str
    owner: str
    epoch: str | None = None
    offset: int = 0
    window: int = 0
    windows: int = 0
    rows: int = 0
    unknown_instrument: int = 0
    unknown: tuple[str, ...] = ()
    gaps: int = 0
    missing_windows: int = 0
    bars: int = 0
    bar_epoch: str | None = None
    bar_number: int = 0
    bar_gaps: int = 0
    missing_bar_batches: int = 0
    statuses: int = 0
    status_epoch: str | None = None
    status_number: int = 0
    status_gaps: int = 0
    missing_statuses: int = 0
    last_gap: str | None = None
    stored_bytes: int = 0
    damaged_segments: int = 0
    damaged: tuple[str, ...] = ()
    tidy_failures: int = 0
    tidy_problem: str | None = None
    flush_ms: int = 60_000
    started_ms: int = 0
    updated_ms: int = 0
    problem: str | None = None
    is_stopped: bool = False

    def encode(self) -> bytes:
        """Encode; ``decode`` gives back an equal one."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, value: bytes) -> "ArchiveState":
        """Decode what an archive has said. Raises ValueError."""
        try:
            known: dict[str, Any] = dict(orjson.loads(value))
            names = {field.name for field in fields(cls)}
            # A newer archive may say more.
            values = {name: known[name] for name in known.keys() & names}
            for name in ("unknown", "damaged"):
                values[name] = tuple(values.get(name, ()))
            state = cls(**values)
            int(state.window), int(state.flush_ms), int(state.offset)
        except (TypeError, KeyError) as error:
            raise ValueError(f"archive: {error!r}") from None
        return state

    def is_behind(self, published_ms: int, window_ms: int) -> bool:
        """Tell whether windows should be stored by now that are not, or cannot be.

        ``published_ms`` is the end of the newest window that was published. Two
        flushes may pass: the one that collects, and one to spare; and so many after a
        start, while it catches up.
        """
        if self.is_stopped:
            return False
        if self.problem is not None:
            return True
        allowed_ms = 2 * self.flush_ms + LATE_AFTER_WINDOWS * window_ms
        return published_ms - max(self.window, self.started_ms) > allowed_ms


def decode_archives(stored: Mapping[bytes, bytes]) -> dict[str, ArchiveState]:
    """Return the archives by their names; what cannot be read is left out."""
    states = {}
    for name, value in sorted(stored.items()):
        try:
            states[name.decode(errors="replace")] = ArchiveState.decode(value)
        except ValueError:
            continue
    return states
