"""The end of a partition of Kafka: what waits there, and how its stamps fit. Pure."""

from dataclasses import dataclass

AHEAD_MS = 5_000
"""An entry stamped further ahead of this machine's clock does not say when it was
appended: only a topic that lets its producers stamp can hold one.
"""

BEHIND_MS = 60_000
"""Nor does one that has just come and is stamped longer ago than this."""


@dataclass(frozen=True, slots=True)
class KafkaEnd:
    """The last position of a partition that can be read, -1 if it never had one.

    ``append_ms`` is the newest stamp among the entries that are left. ``waiting``
    offsets stand behind a transaction that is open, and have done so since
    ``waits_since_ms``. ``stamp_off_ms`` is how far the newest stamp is ahead of the
    clock, negative behind it, where that cannot be the time of an append.
    """

    position: int
    append_ms: int | None
    waiting: int = 0
    waits_since_ms: int | None = None
    stamp_off_ms: int = 0


def look_at(
    before: KafkaEnd | None, stable: int, high: int, stamp_ms: int, now_ms: int
) -> KafkaEnd:
    """Return the end of a partition; ``before`` is what it was at the last look.

    ``stable`` is the offset after what can be read, ``high`` the one after what was
    appended, ``stamp_ms`` the newest stamp, negative where nothing is left.
    """
    position, append_ms = stable - 1, stamp_ms if stamp_ms >= 0 else None
    waiting = max(0, high - stable)
    since_ms = None
    if waiting:
        if before is not None and before.position == position:
            since_ms = before.waits_since_ms
        since_ms = now_ms if since_ms is None else since_ms
    off_ms = _stamp_off_ms(before, position, append_ms, now_ms)
    return KafkaEnd(position, append_ms, waiting, since_ms, off_ms)


def _stamp_off_ms(
    before: KafkaEnd | None, position: int, append_ms: int | None, now_ms: int
) -> int:
    if append_ms is None:
        return 0
    off_ms = append_ms - now_ms
    if off_ms > AHEAD_MS:
        return off_ms
    if before is None or off_ms >= -BEHIND_MS:
        return 0
    # Nobody knows of an entry that was there before when it came.
    return off_ms if position > before.position else min(0, before.stamp_off_ms)
