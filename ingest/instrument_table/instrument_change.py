"""A change of the instrument table: an instrument from now on, or its end. Pure.

This module is a contract. The table is a stream of changes; the newest of an ISIN is
what is known of it. In a Redis stream an entry has the fields ``isin`` and
``instrument``, in a topic the ISIN is the key and the instrument the value. An
instrument is a JSON object of text; nothing, in its place, ends the instrument.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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
