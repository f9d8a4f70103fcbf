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
    return key.startswith((MARKET, SECTOR))


class Instruments:
    """Every instrument by ISIN, as of a ``version``; ``after`` makes another."""

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
        return self if version == self.version else Instruments(self, version)

    @cached_property
    def digest(self) -> str:
        """Names the content: two tables that say the same have the same."""
        encoded = b"\n".join(instrument.encoded for instrument in self)
        return hashlib.blake2b(encoded, digest_size=8).hexdigest()

    def get(self, isin: str) -> InstrumentEntry | None:
        return self._by_isin.get(isin)

    def of_code(self, code: str) -> InstrumentEntry | None:
        """Return the instrument with this code, of two that with the smaller ISIN."""
        return self._by_code.get(code)

    def isin_of(self, code: str) -> str | None:
        """Return the ISIN of a code, or a series' key; None if there is none."""
        before = code_of(code)
        instrument = self._by_code.get(before)
        return None if instrument is None else instrument.isin + code[len(before) :]

    def search(self, text: str) -> Iterator[InstrumentEntry]:
        """Yield those with a text in the name or where code or ISIN begins."""
        wanted = text.strip().casefold()
        for instrument in self:
            names = (instrument.name or "", instrument.english_name or "")
            keys = (instrument.isin, instrument.code or "")
            if any(wanted in name.casefold() for name in names) or any(
                key.casefold().startswith(wanted) for key in keys
            ):
                yield instrument

    def members(self, key: str) -> frozenset[str] | None:
        """Return the ISINs of ``market:…`` or ``sector:…``, None of any other."""
        return self.groups.get(key)

    def regrouped(self, later: "Instruments") -> frozenset[str]:
        before, after = self.groups, later.groups
        keys = before.keys() | after.keys()
        return frozenset(key for key in keys if before.get(key) != after.get(key))

    def renames(self, later: "Instruments") -> dict[str, str]:
        """Return which groups all instruments left for one other: old to new."""
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
