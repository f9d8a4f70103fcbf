"""From an exchange's frames to entries of the trade log, all of it counted. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    ExchangeTrade,
    Frame,
    Numbering,
    Piece,
    Skip,
)
from ingest.adapters.trade_numbers import TradeNumbers
from ingest.decimals import plain_decimal
from ingest.sources.event import Refusals
from ingest.trade import InvalidTrade, Trade

NOT_ASKED = "not_asked"
"""A trade of a symbol that nobody subscribed to: skipped."""

OTHER_SKIPS = "other"
"""Names of skips beyond ``MOST_SKIP_NAMES`` are counted together."""

MOST_SKIP_NAMES = 32
MAX_TEXT_CHARS = 200
"""Longest text an exchange may put into a further field of a trade."""

Entry = tuple[str, bytes]


@dataclass(slots=True)
class FrameCounts:
    """What came, of one feed, over all connections."""

    frames: int = 0
    trades: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


class ClockDifference:
    """The exchange's clock minus ours, from when frames were sent and came.

    A frame comes after it was sent, so the greatest difference of a while is the
    nearest to the truth, and still a little too small.
    """

    RENEWED_EVERY_US = 10_000_000

    def __init__(self) -> None:
        self._since_us = 0
        self._greatest_us: int | None = None
        self._before_us: int | None = None

    def note(self, sent_us: int, received_us: int) -> None:
        """Take in one frame."""
        difference_us = sent_us - received_us
        if received_us - self._since_us >= self.RENEWED_EVERY_US:
            self._before_us, self._greatest_us = self._greatest_us, None
            self._since_us = received_us
        if self._greatest_us is None or difference_us > self._greatest_us:
            self._greatest_us = difference_us

    @property
    def seconds(self) -> float | None:
        """The difference, above zero if the exchange is ahead; None if unknown."""
        known = [us for us in (self._greatest_us, self._before_us) if us is not None]
        return max(known) / 1e6 if known else None


class Intake:
    """What frames become. ``keys`` are the ISINs of all symbols that were asked for.

    Trades are checked by the rules of the trade; one that breaks a rule, and a frame
    that cannot be read, is counted in ``refusals`` and loses nothing else.
    """

    def __init__(
        self,
        venue: str,
        numbering: Numbering,
        keys: Mapping[str, str],
        refusals: Refusals,
    ) -> None:
        self._venue = venue
        self._keys = keys
        self._refusals = refusals
        self._arrived_us = 0
        self.numbers = TradeNumbers(numbering)
        self.counts = FrameCounts()
        self.clock = ClockDifference()

    def read(
        self, adapter: Adapter, frame: Frame, now_us: int
    ) -> tuple[list[Entry], list[Piece]]:
        """Return the entries of a frame, and what else it asks for. Raises nothing.

        ``now_us`` is when it came. Trades before a fault in the frame are kept.
        """
        self.counts.frames += 1
        entries: list[Entry] = []
        others: list[Piece] = []
        try:
            for piece in adapter.decode(frame):
                if type(piece) is ExchangeTrade:
                    self._take(piece, now_us, entries)
                elif type(piece) is Skip:
                    self._skip(str(piece.name))
                else:
                    others.append(piece)
        except InvalidTrade as error:
            self.refuse(error)
        except Exception as error:  # noqa: BLE001 - a user's adapter may raise anything
            told = f"{type(error).__name__}: {error}"[:MAX_TEXT_CHARS]
            self.refuse(InvalidTrade("not_decoded", "frame", frame, told))
        self.counts.trades += len(entries)
        return entries, others

    def refuse(self, error: InvalidTrade) -> None:
        """Count what cannot be read; the first few are kept in words."""
        self._refusals.add(self.counts.frames, error, of="frame")

    def _take(self, traded: ExchangeTrade, now_us: int, entries: list[Entry]) -> None:
        isin = self._keys.get(traded.symbol)
        if isin is None:
            self._skip(NOT_ASKED)
            return
        if traded.sent_us is not None:
            self.clock.note(traded.sent_us, now_us)
        try:
            trade = self._check(isin, traded, now_us)
        except InvalidTrade as error:
            self.refuse(error)
            return
        size = int(trade.size) if trade.size.isdigit() else 0
        if self.numbers.is_new(traded.symbol, traded.number, traded.series, size):
            entries.append((isin, trade.to_wire()))

    def _check(self, isin: str, traded: ExchangeTrade, now_us: int) -> Trade:
        fields: dict[str, Any] = {
            "isin": isin,
            "time": traded.time_us,
            "seq": traded.number,
            "price": _plain("price", traded.price),
            "size": _plain("size", traded.size),
            "venue": self._venue,
            "symbol": traded.symbol,
        }
        if traded.number is None:
            # Grows from one trade to the next, and from one run to the next, too.
            self._arrived_us = max(self._arrived_us + 1, now_us)
            fields["seq"] = self._arrived_us
        for name, value in traded.extra.items():
            if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
                rule = f"has over {MAX_TEXT_CHARS} characters"
                raise InvalidTrade("bad_field", name, value, rule)
            # None takes the place of what the feed itself says.
            fields.setdefault(name, value)
        return Trade.from_fields(fields)

    def _skip(self, name: str) -> None:
        skipped = self.counts.skipped
        is_known = name in skipped or len(skipped) < MOST_SKIP_NAMES
        skipped[name if is_known else OTHER_SKIPS] += 1


def _plain(name: str, value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return plain_decimal(value)
    except ValueError as error:
        raise InvalidTrade(f"bad_{name}", name, value, str(error)) from None
