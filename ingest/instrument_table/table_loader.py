"""Reads the instrument table as it is now, and has it say what a list says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ingest.instrument_table.day_facts import DayFacts
from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_store import (
    InstrumentChange,
    InstrumentStore,
    TableLost,
    TableMoved,
    difference,
    encode_instrument,
)
from ingest.instrument_table.known_instruments import Instruments

if TYPE_CHECKING:
    # A task of Spark reads the table: it should not load what checks lists.
    from ingest.instrument_table.instrument_list import InstrumentList

MOST_BYTES = 33_554_432
"""Most bytes of all instruments together: every gateway has them in memory."""

_ATTEMPTS = 20

_Choice = Callable[[Instruments], list[InstrumentEntry]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load has changed: how many instruments, and how many it left alone."""

    added: int
    changed: int
    removed: int
    unchanged: int
    version: int


def read_on(store: InstrumentStore, known: Instruments) -> tuple[Instruments, int]:
    """Return the table of now, and how many changes on the way to it are none.

    The table that is known, if nothing has changed. Raises TableAway.
    """
    changes: list[InstrumentChange] = []
    refused, base, version = 0, known, known.version
    is_last = False
    while not is_last:
        try:
            page = store.read(version)
        except TableLost:
            base, changes, version = Instruments(), [], 0
            continue
        changes += page.changes
        refused += page.refused
        version, is_last = page.version, page.is_last
    if base is known and version == known.version:
        return known, refused
    return base.after(changes).at(version), refused


def changes_of(store: InstrumentStore, instrument: str) -> list[InstrumentChange]:
    """Return an instrument's changes that are kept, oldest first. Raises TableAway.

    ``instrument`` is its ISIN, or a code: that of who had it last, in the table or not.
    """
    isin = instrument
    for change in _changes(store):
        if change.entry is not None and change.entry.code == instrument:
            isin = change.isin
    return [change for change in _changes(store) if change.isin == isin]


def _changes(store: InstrumentStore) -> Iterator[InstrumentChange]:
    version, is_last = 0, False
    while not is_last:
        page = store.read(version)
        yield from page.changes
        version, is_last = page.version, page.is_last


def load_list(
    store: InstrumentStore, wanted: "InstrumentList", *, is_forced: bool
) -> Loaded:
    """Have the table say what a list says; instruments not in it leave the table.

    Unless it is forced, a list that is empty, or without more than half of the table's
    instruments, changes nothing. Raises BadInstruments, TableAway and TableMoved.
    """

    def choose(known: Instruments) -> list[InstrumentEntry]:
        stay = sum(known.get(i.isin) is not None for i in wanted.instruments)
        if is_forced:
            return wanted.instruments
        if not wanted.instruments:
            raise BadInstruments("the list has no instrument: --force loads it")
        if (gone := len(known) - stay) > len(known) / 2:
            raise BadInstruments(
                f"the list is without {gone} of the table's {len(known)} instruments: "
                "--force loads it"
            )
        return wanted.instruments

    return _load(store, choose, keeps_others=False)


def update_table(store: InstrumentStore, news: "InstrumentList") -> Loaded:
    """Have the table say what a list says of the instruments and columns that it has.

    All else stays as it is. Raises BadInstruments, TableAway and TableMoved.
    """

    def choose(known: Instruments) -> list[InstrumentEntry]:
        return [updated(known.get(i.isin) or i, i) for i in news.instruments]

    def updated(entry: InstrumentEntry, later: InstrumentEntry) -> InstrumentEntry:
        return replace(entry, **{name: getattr(later, name) for name in news.fields})

    return _load(store, choose, keeps_others=True)


def add_instruments(
    store: InstrumentStore,
    listed: Sequence[InstrumentEntry],
    guessed: Sequence[InstrumentEntry] = (),
) -> Loaded:
    """Have the table say what a feed's list says of its instruments.

    What the list leaves empty stays as the table has it, and a code that another
    instrument has is left to that one. ``guessed`` entries only fill in what the table
    does not say. Raises BadInstruments, TableAway and TableMoved.
    """

    def choose(known: Instruments) -> list[InstrumentEntry]:
        def free(entry: InstrumentEntry) -> InstrumentEntry:
            is_taken = known.isin_of(entry.code or "") not in (None, entry.isin)
            return replace(entry, code=None) if is_taken else entry

        entries = [_over(known.get(e.isin) or e, e) for e in map(free, listed)]
        return entries + [_over(e, known.get(e.isin) or e) for e in map(free, guessed)]

    return _load(store, choose, keeps_others=True)


def _over(below: InstrumentEntry, above: InstrumentEntry) -> InstrumentEntry:
    """Return an entry with the fields that ``above`` has, and else those below."""
    return replace(below, **above.to_fields())


def update_days(store: InstrumentStore, news: Mapping[str, DayFacts]) -> Loaded:
    """Have the table say what a feed says of the day of instruments that the table has.

    ``news`` is by ISIN. Raises TableAway and TableMoved.
    """

    def choose(known: Instruments) -> list[InstrumentEntry]:
        entries = ((known.get(isin), facts) for isin, facts in news.items())
        return [facts.applied(entry) for entry, facts in entries if entry is not None]

    return _load(store, choose, keeps_others=True)


def _load(store: InstrumentStore, choose: _Choice, *, keeps_others: bool) -> Loaded:
    known = Instruments()
    for _ in range(_ATTEMPTS):
        known, _refused = read_on(store, known)
        wanted = choose(known)
        pairs = difference(known, wanted, keeps_others=keeps_others)
        added = sum(known.get(isin) is None for isin, _ in pairs)
        removed = sum(entry is None for _, entry in pairs)
        later = known.after(InstrumentChange(known.version, *p) for p in pairs)
        _check(known, later)
        try:
            version = store.append(pairs, known.version)
        except TableMoved:
            continue
        changed = len(pairs) - added - removed
        unchanged = len(known) - removed - changed
        return Loaded(added, changed, removed, unchanged, version)
    raise TableMoved("others change the instrument table all the time; try again")


def _check(known: Instruments, later: Instruments) -> None:
    from ingest.instrument_table.instrument_list import MOST_INSTRUMENTS

    if len(later) > MOST_INSTRUMENTS:
        raise BadInstruments(
            f"the table would have more than {MOST_INSTRUMENTS} instruments"
        )
    if sum(len(encode_instrument(instrument)) for instrument in later) > MOST_BYTES:
        raise BadInstruments(f"the table would have more than {MOST_BYTES} bytes")
    # Two may have one code if both had it before this change.
    for entry in later:
        owner = later.of_code(entry.code or "")
        if owner is None or owner == entry:
            continue
        before = filter(None, map(known.get, (owner.isin, entry.isin)))
        if [instrument.code for instrument in before] != [entry.code] * 2:
            raise BadInstruments(
                f"code {entry.code!r}: {owner.isin} and {entry.isin} would both have it"
            )
