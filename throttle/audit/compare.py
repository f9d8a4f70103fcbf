"""A published window against the same window computed again. Pure.

An instrument whose trades of a window are all older than what is shown, or do not count
for the last price, has a row that restates: the shown trade, and the sums of the others
in full. Of the latter it has none if nothing was shown before. What cannot be judged is
counted as that, never as right.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingest.instrument_table.known_instruments import Instruments
from throttle.audit.recompute import ComputedRow, RecomputedBatch
from throttle.audit.standing_again import RestatedRow
from throttle.contract.ledger import NOTHING, BatchEntry, Turnover
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import (
    NO_VERSION,
    REVISION_CHARS,
    as_shown,
    is_newer,
)
from throttle.window.decoder import OTHER

Kind = Literal["missing", "extra", "wrong"]


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what it should be.

    ``missing``: it should have been published; ``extra``: no trade of the log is in it,
    or it is there twice; ``wrong``: it should have another trade, text or other sums.
    """

    kind: Kind
    offset: int
    window: int
    isin: str
    expected: Row | None
    published: Row | None

    def __str__(self) -> str:
        expected, published = _words(self.expected), _words(self.published)
        return (
            f"window {self.window}, {self.isin}: {self.kind}: published is "
            f"{published}, by the log it is {expected}"
        )


class PublishedVersions:
    """The newest trade published of each instrument, as far as that is known.

    ``before`` holds what was published before the windows that are looked at,
    ``unknown`` the instruments of which that is not known.
    """

    def __init__(
        self, before: Mapping[str, LastValue] | None = None, unknown: Iterable[str] = ()
    ) -> None:
        self._newest: dict[str, LastValue | Row] = dict(before or {})
        self._unknown = set(unknown)

    def newest(self, isin: str) -> bytes | None:
        """Return an instrument's newest version, None if nobody knows one."""
        shown = self._newest.get(isin)
        return None if shown is None else shown.version

    def is_news(self, row: Row) -> bool | None:
        """Tell whether a row is newer than all before it; None if nobody knows."""
        if row.isin in self._unknown:
            return None
        if row.version == NO_VERSION:
            return False
        return is_newer(row.version, self.newest(row.isin))

    def due(self, made: Row, gone: Container[bytes] = ()) -> tuple[Row | None, bool]:
        """Return what has to be published of the trades of a row, None if nothing is.

        And whether it is news: then it is the row itself, with the instrument's
        revision. ``gone`` are versions that do not stand, without revision. It is known
        what was shown (``is_news``).
        """
        shown = self._newest.get(made.isin)
        known = b"" if shown is None else shown.version
        if made.version != NO_VERSION:
            version = as_shown(made.version, known, gone)
            if is_newer(version, known or None):
                return made.revised(version), True
        return None if shown is None else _restating(shown, made), False

    def learn(self, rows: Iterable[Row]) -> None:
        """Take in a published window; from then on its instruments are known."""
        for row in rows:
            self._unknown.discard(row.isin)
            if is_newer(row.version, self.newest(row.isin)):
                self._newest[row.isin] = row


class WindowVerdict(NamedTuple):
    """What a window is like.

    The trades of ``restating`` instruments were no news, and a row restates. Of so many
    ``undecided`` ones nobody knows whether it restates what was shown, or whether there
    has to be one; its sums are compared.
    """

    differences: list[Difference]
    undecided: int = 0
    restating: Set[str] = frozenset()


def judge(
    snapshot: WindowSnapshot,
    computed: Mapping[str, ComputedRow],
    before: PublishedVersions,
    restated: Mapping[str, RestatedRow] | None = None,
) -> WindowVerdict:
    """Compare a published window with the computed one, instrument by instrument.

    ``restated`` has the rows of instruments of which trades are taken back with it.
    """
    restated = restated or {}
    at = snapshot.offset, snapshot.window
    differences: list[Difference] = []
    published: dict[str, Row] = {}
    for row in snapshot.rows:
        if row.isin in published:
            differences.append(Difference("extra", *at, row.isin, None, row))
        # The day so far is of rows before these, too.
        published[row.isin] = row._replace(day=b"")
    undecided, restating = 0, set()
    for isin in sorted(computed.keys() | published.keys() | restated.keys()):
        sent, due = published.get(isin), None
        again = restated.get(isin)
        if isin in computed or again is not None:
            made = computed[isin].row if again is None else again.row
            if is_known := before.is_news(made) is not None:
                due, is_news = before.due(made, () if again is None else again.gone)
            else:
                due, is_news = _as_far_as_known(made, sent)
            if not is_news:
                undecided += not is_known
                if due is not None:
                    restating.add(isin)
        if sent != due and again is not None and _is_from_before(sent, again):
            undecided += 1
        elif sent != due:
            kind: Kind = "extra" if due is None else "wrong" if sent else "missing"
            differences.append(Difference(kind, *at, isin, due, sent))
    return WindowVerdict(differences, undecided, restating)


def _is_from_before(sent: Row | None, again: RestatedRow) -> bool:
    """Tell whether a row shows a trade that the log does not hold any more."""
    return sent is not None and sent.version[REVISION_CHARS:] not in again.known


def _as_far_as_known(made: Row, sent: Row | None) -> tuple[Row | None, bool]:
    """Return what is due of an instrument of which nobody knows what was shown before.

    And whether it is news. What was sent tells it: the trades were news, or something
    newer is shown; or nothing ever was, if none of them counts for the last price.
    """
    if sent is None:
        return (None, False) if made.version == NO_VERSION else (made, True)
    if made.version != NO_VERSION:
        # The revision, too, is as it was sent.
        made = made.revised(as_shown(made.version, sent.version))
    if sent == made:
        return made, True
    return _restating(made if made.version >= sent.version else sent, made), False


def _restating(shown: LastValue | Row, made: Row) -> Row:
    """Return the row that says again what is shown, for the trades of another row."""
    return Row(made.isin, shown.version, made.row_sums.encode(), shown.body)


def compare_books(
    batch: BatchEntry,
    made: RecomputedBatch,
    lost: Container[int],
    instruments: Instruments | None = None,
) -> list[str]:
    """Say in one sentence each where a batch's books differ from its entries.

    ``lost`` are the partitions whose entries are not all in the log any more,
    ``instruments`` is the instrument table that it was joined with, if that is known.
    """
    problems = []
    for p, books in zip(batch.end.partitions, batch.partitions, strict=True):
        if p in lost:
            continue
        refused = dict(made.refused.get(p, {}))
        skipped = made.skipped.get(p, Counter())
        name = f"batch {batch.offset}, partition {p}"
        if books.read != made.read[p]:
            problems.append(
                f"{name}: the log holds {made.read[p]} entries between its cuts, "
                f"{books.read} were read"
            )
        elif dict(books.refused) != refused:
            problems.append(
                f"{name}: {dict(books.refused)} were refused, by the rules {refused}"
            )
        elif not _same_names(books.skipped, skipped) or books.extra != made.extra[p]:
            problems.append(
                f"{name}: {dict(books.skipped)} were skipped and {books.extra} trades "
                f"came beside others in an entry, by the rules {dict(skipped)} and "
                f"{made.extra[p]}"
            )
        elif books.not_last != made.not_last[p]:
            problems.append(
                f"{name}: {books.not_last} were not for the last price, "
                f"by the rules {made.not_last[p]}"
            )
        elif books.superseded != made.superseded[p]:
            problems.append(
                f"{name}: {books.superseded} were superseded, "
                f"by the rules {made.superseded[p]}"
            )
        elif instruments is not None and batch.end.instruments:
            unknown = sum(
                trades
                for (partition, isin), trades in made.instruments.items()
                if partition == p and instruments.get(isin) is None
            )
            if books.unknown_instrument != unknown:
                problems.append(
                    f"{name}: {books.unknown_instrument} trades were of unknown "
                    f"instruments, by the instrument table {unknown}"
                )
    total = batch.total
    # What is counted otherwise comes to something else as well.
    is_whole = not any(p in lost for p in batch.end.partitions)
    if total.volume and is_whole and not problems:
        for outcome, words in ("read", "read"), ("not_last", "not for the last price"):
            of_books = total.volume.get(outcome, 0), total.value.get(outcome, 0)
            booked, traded = Turnover(*of_books), made.traded.get(outcome, NOTHING)
            if booked != traded:
                problems.append(
                    f"batch {batch.offset}: trades of {booked.words()} were {words}, "
                    f"by the log of {traded.words()}"
                )
    return problems


def _same_names(booked: Mapping[str, int], made: Counter[str]) -> bool:
    """Compare what was skipped; a job puts many names together under one."""
    if OTHER in booked:
        return sum(booked.values()) == made.total()
    return dict(booked) == dict(made)


def _words(row: Row | None) -> str:
    if row is None:
        return "nothing"
    return f"{row.trades} trades, {row.sums.decode()} {row.body.decode()}"
