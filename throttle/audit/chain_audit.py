"""Is no window missing or altered? Published windows against their chain. Pure.

Each window's rows are compared with their digest and the totals of its books, its
hash with these and with the window before, and the totals of a batch's windows with
what its books have of its trades.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hmac import compare_digest
from typing import NamedTuple

from ingest.series import is_series
from throttle.contract.group import decimal_text
from throttle.contract.ledger import BatchEntry, Books
from throttle.contract.snapshot import WindowSnapshot
from throttle.contract.trade_order import REVISION_CHARS, decode_version
from tickthrottle_client.chain_v1 import (
    BEGINS,
    NO_TRADES,
    UNKNOWN,
    ChainPlace,
    Link,
    Totals,
    digest_of,
    sign,
)

SHOWN = 20
"""So many breaks are kept in full; all are counted."""

_ALTERED = "altered"


class Break(NamedTuple):
    """Where the chain does not hold: which window, its end if it is known, and why.

    ``kind`` is ``altered``, ``missing``, ``taken_back``, ``emptied`` or ``books``.
    """

    kind: str
    epoch: str
    offset: int
    window: int | None
    text: str


class AuditedWindow(NamedTuple):
    """A window as it was found: what its rows come to, their digest, and its link.

    ``problem`` is what is wrong with it by itself; ``link`` is None of a window of a
    version before links.
    """

    epoch: str
    offset: int
    window: int | None
    totals: Totals = NO_TRADES
    digest: str = ""
    link: Link | None = None
    problem: str = ""

    @classmethod
    def of_lines(
        cls,
        place: tuple[str, int, int],
        lines: Sequence[bytes],
        link: Link | None,
        problem: str = "",
    ) -> "AuditedWindow":
        """Return a window of these rows' lines (``chain_v1.py``)."""
        totals = NO_TRADES
        try:
            totals = Totals.of(lines)
        except (ArithmeticError, IndexError, ValueError) as error:
            problem = problem or f"a row cannot be read: {error!r:.120}"
        return cls(*place, totals, digest_of(lines), link, problem)

    @classmethod
    def of(cls, snapshot: WindowSnapshot, problem: str = "") -> "AuditedWindow":
        """Return what there is to say of a window of a log or an archive."""
        for row in snapshot.rows:
            time_us, seq, _ = decode_version(row.version)
            revision = int(row.version[:REVISION_CHARS])
            said = b'"isin":"%b","time":%d,"seq":%d,' % (
                row.isin.encode(),
                time_us,
                seq,
            )
            # A body that has no number says nothing of a version.
            is_said = said in row.body or b'"seq"' not in row.body
            if revision and b'"revision":%d' % revision not in row.body:
                is_said = False
            if not is_said:
                problem = problem or f"{row.isin}: its version is not that of its trade"
        lines = [
            row.body + b" " + row.sums
            for row in snapshot.rows
            if not is_series(row.isin)
        ]
        link = snapshot.chain[0] if snapshot.chain else None
        place = snapshot.epoch, snapshot.offset, snapshot.window
        return cls.of_lines(place, lines, link, problem)


@dataclass(slots=True)
class ChainReport:
    """What an audit found; ``notes`` say where the chain begins, and goes on.

    ``unlinked`` windows have no link: a version before wrote them. ``breaks`` are
    ``broken`` in all; the first ones are kept, in order of publication.
    """

    windows: int = 0
    unlinked: int = 0
    batches: int = 0
    totals: Totals = NO_TRADES
    first: ChainPlace | None = None
    last: ChainPlace | None = None
    broken: int = 0
    breaks: list[Break] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether windows with links were looked at, and all hold."""
        return not self.broken and self.windows > self.unlinked


class ChainAudit:
    """Looks at windows in the order of publication; ``report`` is what it has found."""

    def __init__(self, key: bytes = b"") -> None:
        """Have signatures compared as well if there is a ``key``."""
        self.report = ChainReport()
        self._key = key
        self._at: ChainPlace | None = None
        self._totals: dict[tuple[str, int], Totals] = {}

    def look_at(self, window: AuditedWindow) -> None:
        """Take in the next window."""
        report, link, at = self.report, window.link, self._at
        report.windows += 1
        if window.problem:
            self._break(_ALTERED, window, window.problem)
        if link is None:
            report.unlinked += 1
            if at is not None and not window.problem:
                self._look_between(window, at)
            # What comes after it says what it goes on from.
            self._at = None
            return
        before = self._before(window, link)
        place = ChainPlace(window.epoch, window.offset, link.hash)
        report.first = report.first or place
        if link.window != window.window:
            self._break(_ALTERED, window, f"its link is of the window {link.window}")
        self._look_into(window, link)
        if before is not None or link.after == BEGINS:
            hashed = link.hash_after(before, window.epoch, window.offset)
            if hashed != link.hash:
                text = "its hash is not that of its books, rows and the window before"
                self._break(_ALTERED, window, text)
        if self._key and not compare_digest(
            link.signature.encode(), sign(self._key, link.hash).encode()
        ):
            text = (
                "its signature is not that of the key" if link.signature else "unsigned"
            )
            self._break(_ALTERED, window, text)
        self._at = report.last = place

    def end(self, newest: ChainPlace | None) -> None:
        """Say what the newest window has to be, where that is known."""
        at = self.report.last
        if newest is not None and at is not None and at != newest:
            is_short = (at.epoch, at.offset) < (newest.epoch, newest.offset)
            if at.epoch == newest.epoch and (is_short or at.offset == newest.offset):
                kind = "missing" if is_short else _ALTERED
                text = f"the newest window is {at.text}, the stream's {newest.text}"
                self._add(Break(kind, newest.epoch, newest.offset, None, text))

    def compare_books(self, batches: Iterable[BatchEntry]) -> None:
        """Hold the books of batches to the totals of their windows, if all were seen.

        Trades of instruments of which nothing was shown yet are in books alone.
        """
        at = self.report.last
        for batch in batches:
            if at is None or batch.total.extra:
                # What stands beside others in an entry may be of a series.
                continue
            places = [(at.epoch, batch.offset - n) for n in range(batch.windows)]
            if not all(place in self._totals for place in places):
                continue
            self.report.batches += 1
            totals = reduce(Totals.plus, (self._totals[p] for p in places), NO_TRADES)
            if text := _difference(batch.total, totals):
                self._add(Break("books", at.epoch, batch.offset, None, text))

    def _before(self, window: AuditedWindow, link: Link) -> ChainPlace | None:
        """Return what a window comes after, None if that is not known."""
        at, report, here = self._at, self.report, f"offset {window.offset}"
        where = f"{here} of epoch {window.epoch}"
        told = None if link.after is None else _place(link.after)
        if at is None:
            if report.windows > 1 and report.last is None:
                report.notes.append(
                    f"the chain begins at {where}: what was before it "
                    "was published by a version without one"
                )
            return told
        if told is None and link.after is None:
            missing = window.offset - at.offset - 1
            if at.epoch == window.epoch and not missing:
                return at
            text = (
                f"{missing} windows before it are missing"
                if at.epoch == window.epoch
                else f"what came between epoch {at.epoch} and it is missing"
            )
            self._break("missing", window, text)
            return None
        if told is None:
            self._break(
                "emptied",
                window,
                f"the chain begins anew: the stream behind offset {at.offset} of epoch "
                f"{at.epoch} was emptied",
            )
        elif told == at:
            report.notes.append(f"epoch {window.epoch} goes on from {at.text}")
        elif told.epoch == at.epoch and told.offset < at.offset:
            self._break(
                "taken_back",
                window,
                f"it goes on from offset {told.offset} of epoch {told.epoch}: the "
                f"server came back older than it was, and had lost the "
                f"{at.offset - told.offset} windows up to {at.offset}",
            )
        else:
            self._break(
                "missing", window, f"it goes on from {told.text}, not {at.text}"
            )
        return told

    def _look_between(self, window: AuditedWindow, at: ChainPlace) -> None:
        self.report.notes.append(
            f"offset {window.offset} of epoch {window.epoch} has no link: published by "
            f"a version without one, after {at.text}"
        )

    def _look_into(self, window: AuditedWindow, link: Link) -> None:
        totals = window.totals
        self.report.totals = self.report.totals.plus(totals)
        self._totals[window.epoch, window.offset] = totals
        if totals != link.totals:
            ours, told = (" ".join(map(str, one)) for one in (totals, link.totals))
            text = (
                f"its rows come to {ours} (trades, volume, value), its books to {told}"
            )
            self._break(_ALTERED, window, text)
        if window.digest != link.digest:
            text = "its rows are not those that were published, by their digest"
            self._break(_ALTERED, window, text)

    def _break(self, kind: str, window: AuditedWindow, text: str) -> None:
        self._add(Break(kind, window.epoch, window.offset, window.window, text))

    def _add(self, found: Break) -> None:
        self.report.broken += 1
        if len(self.report.breaks) < SHOWN:
            self.report.breaks.append(found)


def _place(text: str) -> ChainPlace | None:
    try:
        return ChainPlace.parse(text)
    except ValueError:
        # Its hash says that it was altered.
        return ChainPlace("", 0, text)


def _difference(books: Books, totals: Totals) -> str:
    """Say what books have otherwise than the rows of their windows."""
    shown, held = books.published + books.superseded, books.stale + books.not_last
    # Of what was never shown no row stands for trades that are taken back at once.
    if not shown - books.taken_back <= totals.trades <= shown + held:
        return (
            f"the books of its batch have {shown + held} trades, its windows "
            f"{totals.trades}"
        )
    if totals.trades < shown + held or books.taken_back:
        return ""
    for name, told in zip(("volume", "value"), totals[1:], strict=True):
        became = dict(getattr(books, name))
        became.pop("read", None)
        booked = decimal_text(sum(became.values())).decode()
        if UNKNOWN not in (told, booked) and booked != told and became:
            return (
                f"the books of its batch have a {name} of {booked}, its windows {told}"
            )
    return ""
