"""What is known of all instruments: the table at a version. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

from ingest.instrument_table.instrument_entry import MAX_CHARS, InstrumentEntry
from ingest.instrument_table.instrument_store import InstrumentChange
from ingest.series import code_of

MARKET, SECTOR = "market:", "sector:"
"""What the keys begin with that stand for all instruments of a market, of a sector."""

MAX_GROUP_CHARS = len(MARKET) + MAX_CHARS
"""Longest such key."""


def has_members(key: str) -> bool:
    """Say whether a key stands for all instruments of a market or sector."""
    return key.startswith((MARKET, SECTOR))


class Instruments:
    """Every instrument, in the order of ISINs; never changed, ``after`` makes another.

    ``version`` is that of the newest change in it, 0 before the first.
    """

    def __init__(
        self, instruments: Iterable[InstrumentEntry] = (), version: int = 0
    ) -> None:
        self._by_isin = {i.isin: i for i in sorted(instruments, key=lambda i: i.isin)}
        self.version = version

    def __len__(self) -> int:
        return len(self._by_isin)

    def __iter__(self) -> Iterator[InstrumentEntry]:
        return iter(self._by_isin.values())

    def after(self, changes: Iterable[InstrumentChange]) -> "Instruments":
        """Return what is known after some changes, in the order of their versions."""
        entries, version = dict(self._by_isin), self.version
        for change in changes:
            version = change.version
            if change.entry is None:
                entries.pop(change.isin, None)
            else:
                entries[change.isin] = change.entry
        return Instruments(entries.values(), version)

    def at(self, version: int) -> "Instruments":
        """Return the same instruments as of another version."""
        return self if version == self.version else Instruments(self, version)

    @cached_property
    def digest(self) -> str:
        """Names the content: two tables that say the same have the same."""
        encoded = b"\n".join(instrument.encoded for instrument in self)
        return hashlib.blake2b(encoded, digest_size=8).hexdigest()

    def get(self, isin: str) -> InstrumentEntry | None:
        """Return what is known of an ISIN, None if nothing is."""
        return self._by_isin.get(isin)

    def of_code(self, code: str) -> InstrumentEntry | None:
        """Return the instrument with this code, of two that with the smaller ISIN."""
        return self._by_code.get(code)

    def isin_of(self, code: str) -> str | None:
        """Return the ISIN of the instrument with this code, None if there is none.

        Of a code with a series behind it (``series.py``), the key of the series.
        """
        before = code_of(code)
        instrument = self._by_code.get(before)
        return None if instrument is None else instrument.isin + code[len(before) :]

    def search(self, text: str) -> Iterator[InstrumentEntry]:
        """Yield the instruments with a text in the name, or where code or ISIN begins.

        Capitals and small letters are the same.
        """
        wanted = text.strip().casefold()
        for instrument in self:
            names = (instrument.name or "", instrument.english_name or "")
            keys = (instrument.isin, instrument.code or "")
            if any(wanted in name.casefold() for name in names) or any(
                key.casefold().startswith(wanted) for key in keys
            ):
                yield instrument

    def members(self, key: str) -> frozenset[str] | None:
        """Return the ISINs that ``market:…`` or ``sector:…`` stands for.

        None if no instrument is of one so called, and for any other key.
        """
        return self.groups.get(key)

    def regrouped(self, later: "Instruments") -> frozenset[str]:
        """Return the keys of markets and sectors that have other instruments later."""
        before, after = self.groups, later.groups
        keys = before.keys() | after.keys()
        return frozenset(key for key in keys if before.get(key) != after.get(key))

    def renames(self, later: "Instruments") -> dict[str, str]:
        """Return which markets and sectors are called otherwise later: old key to new.

        One is, if nothing is called so later, and all of its instruments that are still
        there are of one other.
        """
        renamed = {}
        for old in self.groups.keys() - later.groups.keys():
            left = filter(None, map(later.get, self.groups[old]))
            kind = MARKET if old.startswith(MARKET) else SECTOR
            keys = {k for i in left for k in _groups_of(i) if k.startswith(kind)}
            if len(keys) == 1:
                renamed[old] = keys.pop()
        return renamed

    @cached_property
    def groups(self) -> dict[str, frozenset[str]]:
        """The ISINs of every market and of every sector, by its key."""
        groups: dict[str, set[str]] = defaultdict(set)
        for instrument in self:
            for key in _groups_of(instrument):
                groups[key].add(instrument.isin)
        return {key: frozenset(isins) for key, isins in groups.items()}

    @cached_property
    def _by_code(self) -> dict[str, InstrumentEntry]:
        of_codes = ((i.code, i) for i in reversed(self._by_isin.values()))
        return {code: instrument for code, instrument in of_codes if code is not None}


def _groups_of(instrument: InstrumentEntry) -> Iterator[str]:
    if instrument.market is not None:
        yield MARKET + instrument.market
    if instrument.sector is not None:
        yield SECTOR + instrument.sector
