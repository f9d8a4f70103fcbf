"""The instrument table: a stream of changes, in Redis or in a topic. Pure.

This module is a contract. A change is an instrument from now on, or its end; the newest
of an ISIN is what is known of it. In a Redis stream an entry has the fields ``isin``
and ``instrument``, in a topic the ISIN is the key and the instrument the value. An
instrument is a JSON object of text; nothing, in its place, ends the instrument.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from ingest.instrument_table.instrument_entry import (
    BadInstruments,
    InstrumentEntry,
    read_entry,
)

MAX_CHANGE_BYTES = 16_384
"""Largest change that is looked at: eight fields of text in the longest script fit."""


@dataclass(frozen=True, slots=True)
class InstrumentChange:
    """What is known of an instrument from a version on; ``entry`` is None at its end.

    ``changed_ms`` is when, by the server's clock, milliseconds since 1970.
    """

    version: int
    isin: str
    entry: InstrumentEntry | None
    changed_ms: int = 0


def encode_instrument(entry: InstrumentEntry | None) -> bytes:
    """Encode what a change holds beside its ISIN; empty for an end."""
    return b"" if entry is None else orjson.dumps(entry.to_fields())


def decode_change(
    version: int, isin: bytes, instrument: bytes | None, changed_ms: int = 0
) -> InstrumentChange:
    """Decode a change, whoever wrote it. Raises BadInstruments."""
    if len(isin) + len(instrument or b"") > MAX_CHANGE_BYTES:
        raise BadInstruments(f"a change has more than {MAX_CHANGE_BYTES} bytes")
    name = isin.decode("ascii", "backslashreplace")
    if not instrument:
        isin_alone = read_entry({"isin": name}).isin
        return InstrumentChange(version, isin_alone, None, changed_ms)
    entry = read_entry(_fields(instrument))
    if entry.isin != name:
        raise BadInstruments(f"isin {entry.isin!r}: must be the change's own, {name!r}")
    return InstrumentChange(version, name, entry, changed_ms)


def difference(
    known: Iterable[InstrumentEntry],
    wanted: Iterable[InstrumentEntry],
    *,
    keeps_others: bool = False,
) -> list[tuple[str, InstrumentEntry | None]]:
    """Return what has to change for the known instruments to be the wanted ones.

    Pairs of ISIN and entry, None for an end, in the order of ISINs. Instruments that
    are not wanted end, unless they are kept.
    """
    before = {entry.isin: entry for entry in known}
    later = {entry.isin: entry for entry in wanted}
    changed: dict[str, InstrumentEntry | None] = {
        isin: entry for isin, entry in later.items() if before.get(isin) != entry
    }
    if not keeps_others:
        changed.update(dict.fromkeys(before.keys() - later.keys()))
    return sorted(changed.items(), key=lambda pair: pair[0])


def _fields(instrument: bytes) -> dict[str, str]:
    try:
        fields: Any = orjson.loads(instrument)
    except ValueError:
        raise BadInstruments("an instrument must be JSON") from None
    if not isinstance(fields, dict):
        raise BadInstruments("an instrument must be a JSON object")
    for name, text in fields.items():
        if not isinstance(text, str):
            raise BadInstruments(f"{name[:40]}: must be text")
    return fields


PAGE = 2_000
"""Most changes that are read at a time."""


class TableAway(RuntimeError):
    """The table's server cannot be reached now; it may be back later."""


class TableLost(RuntimeError):
    """The table is not the one that was read before: it is to be read from 0 again."""


class TableMoved(RuntimeError):
    """Somebody else has changed the table: it is to be read and compared again."""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes, oldest first.

    ``version`` is the newest that was looked at, the one asked after if there was
    none. ``is_last`` says that there are no more for now. ``refused`` counts the
    entries that are no change (``decode_change``), which are left out.
    """

    changes: Sequence[InstrumentChange]
    version: int
    is_last: bool
    refused: int


class InstrumentStore(Protocol):
    """The instrument table, read and written; used by one thread at a time.

    A store remembers which table it reads: one that was emptied is another.
    """

    def read(self, after: int) -> ChangePage:
        """Return at most ``PAGE`` changes with versions greater than ``after``.

        Raises TableAway, and TableLost, once, if ``after`` is of a table that is gone.
        """

    def append(
        self, changes: Sequence[tuple[str, InstrumentEntry | None]], after: int
    ) -> int:
        """Append changes, all or none; return the version of the last.

        ``after`` is the newest version that was known when they were chosen: raises
        TableMoved if it is not the newest any more, and TableAway, after which they may
        be there or not.
        """

    def close(self) -> None:
        """Give back what connects it to its server."""
