"""A published window, its groups and its books, against the same from the log. Pure.

An instrument whose trades of a window are all older than what is shown, or do not count
for the last price, has a row that restates: the shown trade, and the sums of the others
in full. Of the latter it has none if nothing was shown before. What cannot be judged is
counted as that, never as right.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingest.instrument_table.known_instruments import Instruments
from ingest.series import is_series
from throttle.audit.recompute import ComputedRow, RecomputedBatch
from throttle.audit.standing_again import RestatedRow
from throttle.contract.group import Group, GroupFigures, market_key, sector_key
from throttle.contract.ledger import NOTHING, BatchEntry, Books, Turnover
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
        if sent == due:
            continue
        shown = None if sent is None else sent.version[REVISION_CHARS:]
        if again is not None and shown is not None and shown not in again.known:
            # It shows a trade that the log does not hold any more.
            undecided += 1
        else:
            kind: Kind = "extra" if due is None else "wrong" if sent else "missing"
            differences.append(Difference(kind, *at, isin, due, sent))
    return WindowVerdict(differences, undecided, restating)


def _as_far_as_known(made: Row, sent: Row | None) -> tuple[Row | None, bool]:
    """Return what is due of an instrument, by what was sent, and whether it is news.

    The trades were, or something newer is shown; or nothing, if none sets the price.
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


def groups_of(
    snapshot: WindowSnapshot,
    computed: Mapping[str, ComputedRow],
    instruments: Instruments,
    restating: Set[str] = frozenset(),
) -> dict[str, Group]:
    """Return the groups that a window has to have; of ``restating`` rows the trades."""
    figures: dict[str, GroupFigures] = defaultdict(GroupFigures)
    for row in snapshot.rows:
        made = computed.get(row.isin)
        if made is None or is_series(row.isin):
            # A difference of its own, or of an instrument that has a row, too.
            continue
        entry = instruments.get(row.isin)
        market, sector = (entry.market, entry.sector) if entry else (None, None)
        trades, amounts = made.row.row_sums
        for key in (market_key(market), sector_key(sector)):
            group = figures[key]
            if amounts is not None:
                group.add_trades(trades, amounts.volume, amounts.value)
            if row.isin not in restating:
                group.add_instrument(
                    made.price, None if entry is None else entry.prev_close
                )
    return {key: of.encode(key, snapshot.window) for key, of in figures.items()}


def judge_groups(
    snapshot: WindowSnapshot,
    batch: BatchEntry,
    computed: Mapping[str, ComputedRow],
    instruments: Instruments,
    restating: Set[str],
) -> Iterator[str]:
    """Say in one sentence each where a window's groups differ from its trades.

    ``instruments`` is the joined table; trades of ``restating`` ones were no news.
    """
    name = f"window {snapshot.window}"
    if snapshot.instruments_version != batch.end.instruments:
        yield (
            f"{name}: says that the instrument table "
            f"{snapshot.instruments_version} was joined, its cut says "
            f"{batch.end.instruments}"
        )
    wanted = {}
    if batch.end.instruments:
        wanted = groups_of(snapshot, computed, instruments, restating)
    published = {group.key: group for group in snapshot.groups}
    for key in sorted(wanted.keys() | published.keys()):
        sent, due = published.get(key), wanted.get(key)
        if sent != due:
            yield f"{name}, {key}: published is {_body(sent)}, due is {_body(due)}"
    if len(published) != len(snapshot.groups):
        yield f"{name}: has a group twice"


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
    table = instruments if batch.end.instruments else None
    problems = [
        f"batch {batch.offset}, partition {p}: {difference}"
        for p, books in zip(batch.end.partitions, batch.partitions, strict=True)
        if p not in lost and (difference := _book_difference(books, made, p, table))
    ]
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


def _book_difference(
    books: Books, made: RecomputedBatch, p: int, instruments: Instruments | None
) -> str | None:
    """Say where a partition's books differ first from its entries."""
    refused, skipped = dict(made.refused[p]), made.skipped[p]
    if books.read != made.read[p]:
        return (
            f"the log holds {made.read[p]} entries between its cuts, "
            f"{books.read} were read"
        )
    if dict(books.refused) != refused:
        return f"{dict(books.refused)} were refused, by the rules {refused}"
    if not _same_names(books.skipped, skipped) or books.extra != made.extra[p]:
        return (
            f"{dict(books.skipped)} were skipped and {books.extra} trades came beside "
            f"others in an entry, by the rules {dict(skipped)} and {made.extra[p]}"
        )
    if books.not_last != made.not_last[p]:
        return (
            f"{books.not_last} were not for the last price, "
            f"by the rules {made.not_last[p]}"
        )
    if books.superseded != made.superseded[p]:
        return f"{books.superseded} were superseded, by the rules {made.superseded[p]}"
    if instruments is not None:
        unknown = sum(
            trades
            for (partition, isin), trades in made.instruments.items()
            if partition == p and instruments.get(isin) is None
        )
        if books.unknown_instrument != unknown:
            return (
                f"{books.unknown_instrument} trades were of unknown instruments, by "
                f"the instrument table {unknown}"
            )
    return None


def _same_names(booked: Mapping[str, int], made: Counter[str]) -> bool:
    """Compare what was skipped; a job puts many names together under one."""
    if OTHER in booked:
        return sum(booked.values()) == made.total()
    return dict(booked) == dict(made)


def _words(row: Row | None) -> str:
    if row is None:
        return "nothing"
    return f"{row.trades} trades, {row.sums.decode()} {row.body.decode()}"


def _body(group: Group | None) -> str:
    return "nothing" if group is None else group.body.decode()
