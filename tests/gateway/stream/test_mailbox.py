"""The mailbox: what one client has not been sent yet."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.protocol.key_sets import InstrumentNumbers, KeySet
from gateway.stream.board import Board, Position
from gateway.stream.frames import Update
from gateway.stream.mailbox import Mailbox, Merged, SnapshotPiece
from tests.examples import many
from tests.gateway.samples import (
    EPOCH,
    HYNIX,
    NAVER,
    SAMSUNG,
    make_row,
    make_snapshot,
)

A, B, C = SAMSUNG, HYNIX, NAVER
NUMBERS = InstrumentNumbers()


def update(offset: int, trades: dict[str, int], windows: int = 1) -> Update:
    """Return an update with so many trades of each instrument."""
    rows = [make_row(isin, seq=offset, trades=n) for isin, n in trades.items()]
    return Update(Position(EPOCH, offset, offset), windows, rows, NUMBERS)


def naming(*isins: str) -> KeySet:
    """Return what watches these instruments."""
    keys = tuple(sorted(isins))
    return KeySet(NUMBERS, keys, keys)


def watching(*isins: str) -> Mailbox:
    """Return an empty mailbox that watches the instruments."""
    mailbox = Mailbox()
    mailbox.watch(naming(*isins))
    return mailbox


def merged(mailbox: Mailbox) -> tuple[dict[str, int], int]:
    """Take an update: for how many trades and windows it stands."""
    taken = mailbox.take(9)
    assert isinstance(taken, Merged)
    rows = {isin: row for isin, row in taken.rows.items() if row is not None}
    return {isin: row.fold().trades for isin, row in rows.items()}, taken.windows


def test_a_client_that_keeps_up_gets_the_shared_update() -> None:
    """One window offered to an empty mailbox comes out as the same object."""
    mailbox, published = watching(A), update(5, {A: 3, B: 1})
    mailbox.offer(published)
    assert not mailbox.is_empty
    assert mailbox.take(9) is published
    assert mailbox.take(9) is None
    assert mailbox.is_empty


def test_an_update_of_other_instruments_is_not_kept() -> None:
    """What the client does not watch leaves its mailbox empty."""
    mailbox = watching(A)
    mailbox.offer(update(5, {B: 1}))
    assert mailbox.is_empty
    assert mailbox.is_empty


def test_a_slow_client_gets_one_merged_update() -> None:
    """Windows add up in ``windows``, their trades in the rows."""
    mailbox = watching(A, B)
    mailbox.offer(update(5, {A: 3}))
    mailbox.offer(update(6, {A: 4, B: 1, C: 9}))
    mailbox.offer(update(8, {C: 1}, windows=2))
    assert merged(mailbox) == ({A: 7, B: 1}, 4)
    assert mailbox.is_empty


def test_an_update_of_no_whole_window_is_not_lost() -> None:
    """While a row is held back an update stands for no window, but has its items."""
    mailbox = watching(A, B)
    mailbox.offer(update(5, {A: 3}, windows=0))
    assert mailbox.resume_offset == 5
    mailbox.watch(naming(A))
    assert not mailbox.is_empty
    assert merged(mailbox) == ({A: 3}, 0)
    assert mailbox.is_empty


def test_a_snapshot_comes_in_pieces_of_which_the_last_is_final() -> None:
    """No piece is larger than the limit."""
    mailbox = watching(A, B, C)
    mailbox.request_snapshot([A, B, C], offset=4)
    assert mailbox.take(2) == SnapshotPiece((A, B), 4, False)
    assert mailbox.take(2) == SnapshotPiece((C,), 4, True)
    assert mailbox.is_empty


def test_an_empty_snapshot_is_one_final_piece() -> None:
    """A client that asked for instruments without a value hears that there is none."""
    mailbox = watching(A)
    mailbox.request_snapshot([], offset=4)
    assert mailbox.take(2) == SnapshotPiece((), 4, True)


def test_a_snapshot_comes_before_updates() -> None:
    """An update offered during a snapshot waits, less what the snapshot will hold."""
    mailbox = watching(A, B)
    mailbox.request_snapshot([A, B], offset=4)
    mailbox.take(1)
    mailbox.offer(update(5, {A: 1, B: 1}))
    assert mailbox.take(1) == SnapshotPiece((B,), 4, True)
    assert merged(mailbox) == ({A: 1}, 1)


def test_windows_covered_by_the_snapshot_leave_nothing_behind() -> None:
    """If the snapshot held all that changed meanwhile, no update follows."""
    mailbox = watching(A)
    mailbox.request_snapshot([A], offset=4)
    mailbox.offer(update(5, {A: 1}))
    mailbox.take(9)
    assert mailbox.take(9) is None
    assert mailbox.is_empty


def test_a_snapshot_takes_over_what_is_pending() -> None:
    """An instrument asked for again moves from the update to the snapshot."""
    mailbox = watching(A, B)
    mailbox.offer(update(5, {A: 1, B: 1}))
    mailbox.request_snapshot([A], offset=5)
    assert mailbox.take(9) == SnapshotPiece((A,), 4, True)
    assert merged(mailbox) == ({B: 1}, 1)


def test_a_snapshots_offset_is_safe_to_resume_from() -> None:
    """It lies before every change that the client has not been sent yet."""
    mailbox = watching(A)
    mailbox.offer(update(5, {A: 1}))
    mailbox.watch(naming(A, B))
    mailbox.request_snapshot([B], offset=5)
    assert mailbox.take(9) == SnapshotPiece((B,), 4, True)


def test_what_is_no_longer_watched_is_not_sent() -> None:
    """Dropping a key drops it from the snapshot and from the update."""
    mailbox = watching(A, B, C)
    mailbox.offer(update(5, {A: 1, C: 2}))
    mailbox.request_snapshot([B], offset=5)
    mailbox.watch(naming(C))
    assert mailbox.take(9) == SnapshotPiece((), 4, True)
    assert merged(mailbox) == ({C: 2}, 1)


def test_a_restart_sends_everything_anew() -> None:
    """Pending changes of the old epoch are forgotten."""
    mailbox = watching(A, B)
    mailbox.offer(update(50, {A: 1}))
    mailbox.restart([B], offset=2)
    assert mailbox.take(9) == SnapshotPiece((B,), 2, True)
    assert mailbox.is_empty


class Reader:
    """A client of one mailbox that checks the promises on everything it gets."""

    def __init__(self) -> None:
        self.board = Board()
        self.board.replace(Position(EPOCH, 0, 0), [])
        self.mailbox = Mailbox()
        self.keys: set[str] = set()
        self.awaits_snapshot: set[str] = set()
        self.seen: dict[str, bytes] = {}

    def subscribe(self, keys: set[str]) -> None:
        self.keys |= keys
        self.mailbox.watch(naming(*self.keys))
        stored = sorted(k for k in keys if self.board.get(k) is not None)
        self.awaits_snapshot |= set(stored)
        self.mailbox.request_snapshot(stored, self.board.position.offset)

    def unsubscribe(self, keys: set[str]) -> None:
        self.keys -= keys
        self.awaits_snapshot -= keys
        for key in keys:
            self.seen.pop(key, None)
        self.mailbox.watch(naming(*self.keys))

    def publish(self, keys: set[str]) -> None:
        offset = self.board.position.offset + 1
        rows = [make_row(key, seq=offset) for key in sorted(keys)]
        news = self.board.apply(make_snapshot(offset, *rows))
        self.mailbox.offer(Update(self.board.position, 1, news.rows, NUMBERS))

    def take(self) -> bool:
        taken = self.mailbox.take(2)
        match taken:
            case None:
                return not self.mailbox.is_empty
            case SnapshotPiece(isins):
                self.awaits_snapshot -= set(isins)
                self.get(isins)
            case Merged(rows, _):
                self.get(rows)
            case Update():
                self.get(taken.names(self.mailbox.key_set))
        return True

    def get(self, isins: Iterable[str]) -> None:
        got = list(isins)
        assert len(got) == len(set(got)), "an instrument twice in a frame"
        assert not self.awaits_snapshot & set(got), "an update before the snapshot"
        assert set(got) <= self.keys, "an instrument it does not watch"
        for isin in got:
            row = self.board.get(isin)
            assert row is not None
            assert row.version >= self.seen.get(isin, b""), "an instrument went back"
            self.seen[isin] = row.version


KEYS = st.sets(st.sampled_from([A, B, C]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), KEYS),
        st.tuples(st.just("subscribe"), KEYS),
        st.tuples(st.just("unsubscribe"), KEYS),
        st.tuples(st.just("take"), st.just(set())),
    ),
    max_size=40,
)


@settings(max_examples=many(200))
@given(STEPS)
def test_whatever_happens_the_client_ends_with_the_newest(
    steps: list[tuple[str, set[str]]],
) -> None:
    """However it is interleaved, all promises hold and nothing is missing."""
    reader = Reader()
    for step, keys in steps:
        if step == "take":
            reader.take()
        else:
            getattr(reader, step)(keys)
    while reader.take():
        pass
    assert reader.mailbox.is_empty
    assert not reader.awaits_snapshot
    for key in reader.keys:
        row = reader.board.get(key)
        assert reader.seen.get(key) == (row.version if row else None)
