"""The log as looking back reads it: what may be wanted is found, what was read is kept.

To read an entry takes 4 µs, to take it apart 20 µs, to search one that is kept 0.3 µs.
Batches that take trades back follow each other, and look at the same part of the log.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ingest.tradelog.contract import Chunk, Head, Ranges, Tail
from throttle.window.checked_rows import joined, select
from throttle.window.vector_check import has_wire_form, isins, numbers

EVERYTHING: Collection[int] = ()
"""Of an instrument whose trades are wanted whatever their numbers are."""

Wanted = Mapping[str, Collection[int]]
"""Instruments, and of each the numbers of the trades that are wanted; a trade that
corrects or cancels such a number is wanted, too.
"""

MOST_BYTES = 64 * 1024 * 1024
"""So much text of entries is kept, the newest: some 600,000."""

_MOST_OF_PIECE = 65_536
_MOST_NUMBERS = 200
"""So many numbers are looked for in text; a pattern of more takes far too long."""


class PastLog(Protocol):
    """What looking back asks of a log (``LogReader``)."""

    def head(self) -> Head:
        """Return where the log begins."""

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        """Return where the log stands, seen from a boundary."""

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, by partition."""


class Found(NamedTuple):
    """Entries of a partition that may be wanted, never too few, some too many.

    So many were ``read`` for it; what was kept from before does not count.
    """

    partition: int
    chunks: list[Chunk]
    read: int


class SearchedLog:
    """A log that keeps at most so many bytes of what was read, the newest.

    With ``is_text`` entries are JSON of one trade each; of others all may be wanted.
    """

    def __init__(
        self,
        open_log: Callable[[], PastLog],
        max_entry_bytes: int,
        *,
        is_text: bool,
        most_bytes: int = 0,
    ) -> None:
        """Take how the log is opened; begin with nothing."""
        self.open = open_log
        self._max_entry_bytes = max_entry_bytes
        self._is_text = is_text
        self._most_bytes = most_bytes
        self._pieces: dict[int, list[_Piece]] = {}

    def search(self, ranges: Ranges, wanted: Wanted) -> Iterator[Found]:
        """Yield what may be wanted, ``after < position <= upto``, by partition.

        Raises what reading the log raises.
        """
        holes = {}
        for p, (after, upto) in ranges.items():
            pieces = self._pieces.get(p, ())
            over = [one for one in pieces if one.after < upto and after < one.upto]
            yield from (Found(p, one.search(after, upto, wanted), 0) for one in over)
            edges = [after, *(edge for one in over for edge in one[:2]), upto]
            pairs = zip(edges[::2], edges[1::2], strict=True)
            holes[p] = [(begin, end) for begin, end in pairs if begin < end]
        for spans in zip_longest(*holes.values()):
            given = zip(holes, spans, strict=True)
            reading = {p: span for p, span in given if span is not None}
            at = {p: after for p, (after, _) in reading.items()}
            for p, chunk in self.open().read(reading):
                piece = self._piece(at[p], chunk)
                self._keep(p, piece)
                yield Found(p, piece.search(*ranges[p], wanted), len(chunk))
                at[p] = chunk.upto
        self._forget()

    def _piece(self, after: int, chunk: Chunk) -> "_Piece":
        is_plain = pa.repeat(pa.scalar(False), len(chunk))
        if self._is_text:
            # What corrects another trade has no such form.
            is_plain = has_wire_form(chunk.payloads, self._max_entry_bytes)
        plain, odd = select(chunk, is_plain), select(chunk, pc.invert(is_plain))
        names, seqs = pa.array([], pa.string()), pa.array([], pa.int64())
        if len(plain):
            names = isins(plain.payloads).cast(pa.string())
            seqs = numbers(plain.payloads)[0]
        return _Piece(after, chunk.upto, plain, names, seqs, odd, self._is_text)

    def _keep(self, partition: int, piece: "_Piece") -> None:
        """Keep a piece where it belongs, as one with its neighbours if they are small.

        So there are few pieces, and an entry is copied few times.
        """
        if not self._most_bytes:
            return
        pieces = self._pieces.setdefault(partition, [])
        at = sum(one.upto <= piece.after for one in pieces)
        pieces.insert(at, piece)
        while at and pieces[at - 1].may_join(pieces[at], pieces[at]):
            pieces[at - 1 : at + 1] = [pieces[at - 1].joined(pieces[at])]
            at -= 1
        while at + 1 < len(pieces) and pieces[at].may_join(pieces[at + 1], pieces[at]):
            pieces[at : at + 2] = [pieces[at].joined(pieces[at + 1])]

    def _forget(self) -> None:
        """Forget the oldest pieces, as long as it is too much."""
        every = sorted(
            (piece.newest_ms, partition, piece.size)
            for partition, pieces in self._pieces.items()
            for piece in pieces
        )
        size = sum(one for _, _, one in every)
        for _, partition, of_it in every:
            if size <= self._most_bytes:
                break
            size -= of_it
            del self._pieces[partition][0]


class _Piece(NamedTuple):
    """The entries of a partition with ``after < position <= upto``, to be searched.

    ``plain`` ones are trades of the usual form that take nothing back, of these
    instruments and with these numbers.
    """

    after: int
    upto: int
    plain: Chunk
    isins: pa.Array
    numbers: pa.Array
    odd: Chunk
    is_text: bool

    @property
    def size(self) -> int:
        """How many bytes its entries have."""
        columns = (getattr(c, n) for c in (self.plain, self.odd) for n in _COLUMNS)
        return sum(one.nbytes for one in (*columns, self.isins, self.numbers))

    @property
    def newest_ms(self) -> int:
        """When its newest entry was appended, 0 if it has none."""
        of_both = (self.plain.append_ms, self.odd.append_ms)
        return max(pc.max(one).as_py() or 0 for one in of_both)

    def __len__(self) -> int:
        return len(self.plain) + len(self.odd)

    def search(self, after: int, upto: int, wanted: Wanted) -> list[Chunk]:
        """Return what may be wanted between two positions."""
        values = {number for some in wanted.values() for number in some}
        has_numbers = all(wanted.values())
        is_it = _between(self.plain, after, upto)
        names = pa.array(wanted, pa.string())
        is_it = pc.and_(is_it, pc.is_in(self.isins, names))
        if has_numbers:
            of_them = pa.array(values, pa.int64())
            is_it = pc.and_(is_it, pc.is_in(self.numbers, of_them))
        odd = select(self.odd, _between(self.odd, after, upto))
        if self.is_text:
            odd = _matching(odd, sorted(wanted))
            if has_numbers and len(values) <= _MOST_NUMBERS:
                # Whole numbers have one form.
                odd = _matching(odd, [f"[^0-9](?:{'|'.join(map(str, values))})[^0-9]"])
        return [one for one in (select(self.plain, is_it), odd) if len(one)]

    def may_join(self, later: "_Piece", new: "_Piece") -> bool:
        """Tell whether it and the one that follows should be one, as one is new."""
        size = len(self) + len(later)
        is_worth_it = size <= min(3 * len(new) + 1, _MOST_OF_PIECE)
        return self.upto == later.after and is_worth_it

    def joined(self, later: "_Piece") -> "_Piece":
        """Return it and the one that follows as one."""
        return _Piece(
            self.after,
            later.upto,
            joined([(0, self.plain), (0, later.plain)])[0],
            pa.concat_arrays([self.isins, later.isins]),
            pa.concat_arrays([self.numbers, later.numbers]),
            joined([(0, self.odd), (0, later.odd)])[0],
            self.is_text,
        )


_COLUMNS = ("positions", "append_ms", "payloads")


def _between(chunk: Chunk, after: int, upto: int) -> pa.Array:
    after_it = pc.greater(chunk.positions, pa.scalar(after, pa.int64()))
    upto_it = pc.less_equal(chunk.positions, pa.scalar(upto, pa.int64()))
    return pc.and_(after_it, upto_it)


def _matching(chunk: Chunk, forms: Sequence[str]) -> Chunk:
    """Return the entries of a chunk that match a form, or are written with escapes."""
    pattern = "|".join([*forms, r"\\u"])
    return select(chunk, pc.match_substring_regex(chunk.payloads, pattern))
