"""What has to be published, worked out anew from the trade log. Does no I/O.

A second statement of the rule in plain Python, made to be fast: a trade that has the
usual form is judged by what is known of it, all others by the trade's own contract.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from ingest.trade import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    MAX_SEQ,
    RESERVED,
    InvalidTrade,
    Trade,
    check_isin,
    check_not_ahead,
)

Order = tuple[int, int, int]
"""A trade's place among those of its issue: time, seq, position in the log."""

_NOTHING: Order = (-1, -1, -1)
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)
_REMEMBERED = 200_000


class Piece(NamedTuple):
    """Entries of one partition in their order, as columns of equal length."""

    append_ms: Sequence[int]
    positions: Sequence[int]
    payloads: Sequence[bytes]


class Expected(NamedTuple):
    """What a window publishes of an issue.

    ``trades`` is how many it stands for, ``first_ms`` when the first one that was
    newer than all published before entered the log.
    """

    order: Order
    payload: bytes
    trades: int
    first_ms: int


class Oracle:
    """Works windows out, one after the other.

    ``known`` is the newest published of each issue before the first one.
    """

    def __init__(self, max_ahead_ms: int, known: Mapping[str, Order]) -> None:
        self.read = 0
        self.superseded = 0
        self.stale = 0
        self.refused: Counter[str] = Counter()
        self._max_ahead_us = max_ahead_ms * 1_000
        self._known = dict(known)
        self._issues: set[str] = set()
        self._decimals: set[str] = set()
        self._names: set[tuple[str, ...]] = set()

    @property
    def issues(self) -> int:
        """How many issues have had a valid trade."""
        return len(self._issues)

    def learn(self, isin: str, order: Order) -> None:
        """Take in what was published of an issue in a window that was not computed."""
        if order > self._known.get(isin, _NOTHING):
            self._known[isin] = order

    def window(
        self, pieces: Iterable[Piece], last_ms: int | None = None
    ) -> dict[str, Expected]:
        """Return what the next window publishes, given all entries in it.

        ``last_ms`` is the latest append time that counts in it, of logs that let others
        stamp.
        """
        found: dict[str, list[Any]] = {}
        for piece in pieces:
            self.read += len(piece.payloads)
            self._collect(piece, found, last_ms)
        expected: dict[str, Expected] = {}
        for isin, (
            time_us,
            seq,
            position,
            payload,
            trades,
            first_ms,
            _,
        ) in found.items():
            self.superseded += trades - 1
            if first_ms is None:
                self.stale += 1
                continue
            order = (time_us, seq, position)
            self._known[isin] = order
            expected[isin] = Expected(order, payload, trades, first_ms)
        return expected

    def _collect(
        self, piece: Piece, found: dict[str, list[Any]], last_ms: int | None
    ) -> None:
        # One loop with everything in it: at this rate a call per trade is felt.
        issues, decimals, names = self._issues, self._decimals, self._names
        known, ahead_us, loads = self._known, self._max_ahead_us, orjson.loads
        for append_ms, position, payload in zip(*piece, strict=True):
            counted_ms = append_ms if last_ms is None else min(append_ms, last_ms)
            try:
                fields = loads(payload)
                isin, time_us, seq = fields["isin"], fields["time"], fields["seq"]
                is_usual = (
                    isin in issues
                    and fields["price"] in decimals
                    and fields["size"] in decimals
                    and type(time_us) is int
                    and EARLIEST_TIME_US <= time_us < LATEST_TIME_US
                    and type(seq) is int
                    and 0 <= seq <= MAX_SEQ
                    and time_us <= counted_ms * 1_000 + ahead_us
                    and len(payload) <= MAX_PAYLOAD_BYTES
                    and tuple(fields) in names
                    and _PLAIN.issuperset(map(type, fields.values()))
                )
            except (ValueError, TypeError, KeyError, RecursionError):
                is_usual = False
            if not is_usual:
                trade = self._judge(payload, counted_ms)
                if trade is None:
                    continue
                isin, time_us, seq = trade.isin, trade.time_us, trade.seq
            best = found.get(isin)
            if best is None:
                before = known.get(isin, _NOTHING)
                is_news = (time_us, seq, position) > before
                first_ms = append_ms if is_news else None
                found[isin] = [time_us, seq, position, payload, 1, first_ms, before]
                continue
            best[4] += 1
            if time_us < best[0]:
                newer = False
            elif time_us > best[0]:
                newer = True
            else:
                newer = (seq, position) > (best[1], best[2])
            if newer:
                best[0], best[1], best[2], best[3] = time_us, seq, position, payload
            first_ms = best[5]
            # Of several partitions the later ones may hold an earlier entry.
            if (first_ms is None or append_ms < first_ms) and (
                time_us,
                seq,
                position,
            ) > best[6]:
                best[5] = append_ms

    def _judge(self, payload: bytes, append_ms: int) -> Trade | None:
        """Judge an entry by the contract; None if it is refused. Remember its form."""
        try:
            trade = Trade.from_wire(payload)
            check_not_ahead(trade, append_ms * 1_000, self._max_ahead_us)
        except InvalidTrade as error:
            self.refused[error.reason] += 1
            return None
        self._issues.add(check_isin(trade.isin))
        for text in (trade.price, trade.size):
            if len(self._decimals) < _REMEMBERED and _DECIMAL.fullmatch(text):
                self._decimals.add(text)
        names = tuple(orjson.loads(payload))
        if len(self._names) < _REMEMBERED and RESERVED.isdisjoint(names):
            self._names.add(names)
        return trade


_PLAIN = frozenset({str, int})
"""Types of values that every field may have: what JSON can hold of them is valid."""
