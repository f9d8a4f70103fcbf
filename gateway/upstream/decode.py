"""Reads what the throttle sent or stored, doubting every byte. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.stream.board import DEFAULT_WINDOW_MS, Position
from ingest.redis_keys import form_refusal
from throttle.contract.day_so_far import DayValue
from throttle.contract.group import StoredGroup
from throttle.contract.snapshot import NO_DAYS, LastValue, WindowSnapshot
from tickthrottle_client.chain_v1 import ChainPlace


@dataclass(frozen=True, slots=True)
class StoredState:
    """The whole stored state: where the stream stands and every last value.

    ``unreadable`` names the values that were left out, ``jobs`` is how many jobs have
    published. ``chain`` is the place of the newest window, if it has a link.
    """

    position: Position
    window_ms: int
    values: list[LastValue]
    groups: list[StoredGroup]
    unreadable: list[bytes]
    jobs: int
    chain: ChainPlace | None = None


def decode_update(message: Any) -> WindowSnapshot | None:
    """Decode a message; None for anything the throttle would not have written."""
    try:
        snapshot = WindowSnapshot.decode(message)
    except (ValueError, TypeError, AttributeError):
        return None
    numbers = (snapshot.offset, snapshot.window, snapshot.windows)
    if not all(type(number) is int for number in numbers) or snapshot.windows < 1:
        return None
    return snapshot if isinstance(snapshot.epoch, str) else None


def decode_state(
    meta: Mapping[bytes, bytes],
    last: Mapping[bytes, bytes],
    groups: Mapping[bytes, bytes],
    days: Mapping[bytes, bytes] = NO_DAYS,
) -> StoredState | None:
    """Decode the hashes ``Keys.meta``, ``.last``, ``.groups`` and ``.days_so_far``.

    They were read in one step: each day is as of the last value beside it.

    None if nothing is published. Raises ValueError when ``meta`` does not say where the
    stream stands, or that it has another form.
    """
    if (refusal := form_refusal(meta.get(b"epoch"), meta.get(b"form"))) is not None:
        raise ValueError(refusal)
    if b"window" not in meta:
        return None
    values: list[LastValue] = []
    unreadable: list[bytes] = []
    for isin, value in last.items():
        try:
            last_value, stored = LastValue.decode(isin, value), days.get(isin)
            if stored is not None:
                day = DayValue.decode(stored).text
                last_value = last_value._replace(day=day)
            values.append(last_value)
        except ValueError:
            unreadable.append(isin)
    figures: list[StoredGroup] = []
    for name, value in groups.items():
        try:
            figures.append(StoredGroup.decode(value))
        except ValueError:
            unreadable.append(name)
    if b"epoch" not in meta:
        raise ValueError("the stored state has no epoch")
    offset, end_ms = _number(meta, b"offset"), _number(meta, b"window")
    position = Position(meta[b"epoch"].decode(), offset, end_ms)
    window_ms = DEFAULT_WINDOW_MS
    if b"window_ms" in meta:
        window_ms = _number(meta, b"window_ms")
    jobs = sum(name.startswith(b"cut:") for name in meta)
    chain = ChainPlace.parse(meta.get(b"chain", b"").decode())
    if chain is not None and chain[:2] != (position.epoch, offset):
        # A version without links has published since.
        chain = None
    return StoredState(position, window_ms, values, figures, unreadable, jobs, chain)


def _number(meta: Mapping[bytes, bytes], name: bytes) -> int:
    if name not in meta:
        raise ValueError(f"the stored state has no {name.decode()}")
    text = meta[name].decode()
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"the stored {name.decode()} is not a number: {text!r}")
    return int(text)
