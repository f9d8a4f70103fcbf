"""From an exchange's frames to entries of the trade log, all of it counted. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import GeneratorType
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    ExchangeCancel,
    ExchangeCorrection,
    ExchangeStatus,
    ExchangeTrade,
    Frame,
    InstrumentDay,
    Notice,
    Numbering,
    Piece,
    Reconnect,
    Reply,
    Skip,
    Told,
    TurnedAway,
    not_decoded,
)
from ingest.adapters.trade_numbers import TradeNumbers
from ingest.conditions.rule_table import RuleTable
from ingest.conditions.sale_rules import SaleRules
from ingest.decimals import plain_decimal
from ingest.instrument_table.day_facts import DayNews
from ingest.instrument_table.instrument_entry import BadInstruments
from ingest.sources.event import Refusals
from ingest.statuses.status_news import StatusNews
from ingest.statuses.trading_status import TradingStatus, check_status_not_ahead
from ingest.trade import MAX_SEQ, InvalidTrade, Trade
from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS
from tickthrottle_client.trade_v1 import check_integer

NOT_ASKED = "not_asked"
"""A trade of a symbol that nobody subscribed to: skipped."""

CANCEL_NOT_APPLIED = "cancel_not_applied"
CORRECTION_NOT_APPLIED = "correction_not_applied"
"""It names a trade that this feed has not appended, or does not remember: skipped."""

REST_OF_FRAME = "rest_of_frame"
"""What is behind the record at which an adapter's ``decode`` raised: skipped."""

OTHER_SKIPS = "other"
"""Names of skips beyond ``MOST_SKIP_NAMES`` are counted together."""

MOST_SKIP_NAMES = 32
MOST_NOTICES = 32
"""Most notices that are told apart."""

MOST_FAULTS_A_FRAME = 10_000
"""An iterator of a user's that raises more often is not asked again."""

MOST_LATE_US = 60_000_000
"""A trade is this much older at most than one of its instrument that came before."""

SHOWN_SYMBOLS = 5
"""How many symbols that nobody asked for are kept by name."""

MAX_TEXT_CHARS = 200
"""Longest text an exchange may put into a further field of a trade."""

Entry = tuple[str, bytes]


@dataclass(slots=True)
class FrameCounts:
    """What came, of one feed, over all connections."""

    frames: int = 0
    trades: int = 0
    left: int = 0
    """What was or may have been trades, and was not taken; all of it is counted as
    refused or skipped, too.
    """
    skipped: Counter[str] = field(default_factory=Counter)
    drifted: int = 0
    notices: dict[str, None] = field(default_factory=dict)
    """What an operator should know of what came, in words."""
    strangers: dict[str, None] = field(default_factory=dict)
    """Some of the symbols that nobody asked for."""


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
        table: RuleTable | None = None,
    ) -> None:
        """``table`` says what trades count for by their sale conditions."""
        self._sales = None
        if table is not None:
            self._sales = SaleRules(table, refusals.unknown_conditions)
        self._venue = venue
        self._numbering = numbering
        self._keys = keys
        self._refusals = refusals
        self._arrived_us = 0
        self._newest: dict[str, tuple[int, int]] = {}
        self._days: dict[str, InstrumentDay] = {}
        self.numbers = TradeNumbers(numbering, len(keys))
        self.counts = FrameCounts()
        self.clock = ClockDifference()
        self.days = DayNews()
        self.statuses = StatusNews()

    def read(
        self, adapter: Adapter, frame: Frame, now_us: int
    ) -> tuple[list[Entry], list[Piece]]:
        """Return the entries of a frame, and what else it asks for. Raises nothing.

        ``now_us`` is when it came. A record that cannot be read costs itself only,
        unless ``decode`` is a generator that raised: nobody can go on with that.
        """
        self.counts.frames += 1
        entries: list[Entry] = []
        others: list[Piece] = []
        for piece in self._pieces(adapter, frame):
            try:
                self._sort(piece, now_us, entries, others)
            except InvalidTrade as error:
                self.refuse(error)
            except Exception as error:  # noqa: BLE001 - of a value of an odd type
                self.refuse(not_decoded("piece", repr(piece), error))
        self.counts.trades += len(entries)
        return entries, others

    def _pieces(self, adapter: Adapter, frame: Frame) -> Iterator[Any]:
        """Yield what an adapter yields; what it raises is refused, and it goes on."""
        pieces: Iterator[Any] | None = None
        for _ in range(MOST_FAULTS_A_FRAME):
            try:
                if pieces is None:
                    pieces = iter(adapter.decode(frame))
                yield from pieces
                return
            except Exception as error:  # noqa: BLE001 - a user's may raise anything
                is_over = pieces is None or isinstance(pieces, GeneratorType)
                is_of_frame = isinstance(error, InvalidTrade) and error.field == "frame"
                # A fault of the frame itself has nothing behind it.
                if is_over and not is_of_frame:
                    self._skip(REST_OF_FRAME)
                if not isinstance(error, InvalidTrade):
                    error = not_decoded("frame", frame, error)
                self.refuse(error)
                if is_over:
                    return
        self._skip(REST_OF_FRAME)

    def refuse(self, error: InvalidTrade) -> None:
        """Count what cannot be read; the first few are kept in words."""
        self.counts.left += 1
        self._refusals.add(self.counts.frames, error, of="frame")

    def account(self) -> dict[str, Any]:
        """Return what became of all that came, by name, to be logged."""
        counts, numbers = self.counts, self.numbers
        account: dict[str, Any] = {
            "frames": counts.frames,
            "trades": counts.trades,
            "repeated": numbers.repeated,
            "missing": numbers.missing,
            "refused": dict(self._refusals.by_reason()),
            "skipped": dict(counts.skipped.copy()),
        }
        if self._refusals.unknown_conditions:
            unknown = self._refusals.unknown_conditions.copy()
            account["unknown_conditions"] = dict(unknown)
        if counts.strangers:
            account["not_asked_symbols"] = list(counts.strangers)
        return account

    def _sort(
        self, piece: Any, now_us: int, entries: list[Entry], others: list[Piece]
    ) -> None:
        kind = type(piece)
        if kind is ExchangeTrade:
            self._take(piece, now_us, entries)
        elif kind is ExchangeCancel:
            self._cancel(piece, entries)
        elif kind is ExchangeCorrection:
            self._correct(piece, now_us, entries)
        elif kind is InstrumentDay:
            self._note_day(piece)
        elif kind is ExchangeStatus:
            self._note_status(piece, now_us)
        elif kind is Skip:
            self.counts.left += piece.may_be_trade
            self._skip(str(piece.name))
        elif isinstance(piece, InvalidTrade):
            self.refuse(piece)
        elif kind is Notice:
            self.counts.drifted += piece.is_drift
            if len(self.counts.notices) < MOST_NOTICES:
                self.counts.notices[str(piece.words)[:MAX_TEXT_CHARS]] = None
        elif isinstance(piece, (Reply, Told, Reconnect, TurnedAway)):
            if kind is Told:
                self._skip("told")
            others.append(piece)
        else:
            rule = "is nothing that an adapter may yield"
            self.refuse(InvalidTrade("not_decoded", "piece", kind.__name__, rule))

    def _note_day(self, day: InstrumentDay) -> None:
        isin = self._keys.get(day.symbol)
        # Nearly every trade says what the one before it said.
        if isin is None or self._days.get(day.symbol) == day:
            return
        self._days[day.symbol] = day
        try:
            self.days.note(isin, day.prev_close, day.is_halted)
        except BadInstruments:
            self._skip("day_unread")

    def _note_status(self, said: ExchangeStatus, now_us: int) -> None:
        isin = self._keys.get(said.symbol)
        if isin is None:
            self._skip(NOT_ASKED)
            return
        time_us = now_us if said.time_us is None else said.time_us
        fields = {"isin": isin, "status": said.status, "time": time_us}
        try:
            status = TradingStatus.from_fields(
                {**fields, "venue": said.venue, **said.extra}
            )
            check_status_not_ahead(status, now_us)
        except InvalidTrade:
            self._skip("status_unread")
            return
        self.statuses.note(status)

    def _take(self, traded: ExchangeTrade, now_us: int, entries: list[Entry]) -> None:
        isin = self._key_of(traded.symbol)
        if isin is None:
            return
        if traded.sent_us is not None:
            self.clock.note(traded.sent_us, now_us)
        trade = self._check(isin, traded, now_us)
        size = int(trade.size) if trade.size.isdigit() else 0
        number = None
        if traded.number is not None:
            number = trade.extra.get("trade_id", trade.seq)
        if self.numbers.is_new(
            *(traded.symbol, number, traded.series, size),
            time_us=trade.time_us,
            price=trade.price,
            now_us=now_us,
            seq=trade.seq,
        ):
            self._append(self._in_order(trade), traded, entries)

    def _append(
        self, trade: Trade, traded: ExchangeTrade, entries: list[Entry]
    ) -> None:
        if self._sales is not None and traded.sale is not None:
            trade = self._sales.apply(trade, traded.sale)
        entries.append((trade.isin, trade.to_wire()))

    def _key_of(self, symbol: str) -> str | None:
        """Return the ISIN of a symbol; one that nobody asked for is counted."""
        isin = self._keys.get(symbol)
        if isin is None:
            self.counts.left += 1
            if len(self.counts.strangers) < SHOWN_SYMBOLS:
                self.counts.strangers[str(symbol)[:MAX_TEXT_CHARS]] = None
            self._skip(NOT_ASKED)
        return isin

    def _cancel(self, cancel: ExchangeCancel, entries: list[Entry]) -> None:
        isin = self._key_of(cancel.symbol)
        if isin is None:
            return
        which = cancel.symbol, cancel.number, cancel.series
        version = self.numbers.version_of(*which)
        if version is None:
            self._skip(CANCEL_NOT_APPLIED)
            return
        fields = {
            "isin": isin,
            "time": cancel.time_us,
            CANCELS: version[1],
            "venue": self._venue,
            "symbol": cancel.symbol,
        }
        entry = _with_extra(fields, cancel.extra)
        if self.numbers.take_back(*which):
            entries.append((isin, entry.to_wire()))
        else:
            self.numbers.repeated += 1

    def _correct(
        self, correction: ExchangeCorrection, now_us: int, entries: list[Entry]
    ) -> None:
        traded, number = correction.trade, correction.number
        isin = self._key_of(traded.symbol)
        if isin is None:
            return
        version = self.numbers.version_of(traded.symbol, number, traded.series)
        if version is None or traded.number is None:
            self._skip(CORRECTION_NOT_APPLIED)
            return
        trade = self._check(isin, traded, now_us)
        if self._numbering is Numbering.UNIQUE:
            trade = replace(trade, time_us=version[0], seq=version[1])
        stood = self.numbers.put_in_place(
            *(traded.symbol, number, traded.series, traded.number, trade.version)
        )
        if stood is None:
            return
        if stood:
            trade = replace(trade, extra={CORRECTS: version[1], **trade.extra})
        self._append(trade, traded, entries)

    def _in_order(self, trade: Trade) -> Trade:
        """Return a trade that is newer than all of the newest time that came before.

        A volume is no order any more once it went back, and none of two venues.
        """
        if self._numbering is not Numbering.CUMULATIVE:
            return trade
        time_us, seq = self._newest.get(trade.isin, (0, 0))
        if trade.time_us == time_us and trade.seq <= seq:
            trade = replace(trade, seq=min(seq + 1, MAX_SEQ))
        # A time far ahead of what comes then was none.
        is_bogus = time_us - trade.time_us > MOST_LATE_US
        newest = trade.version if is_bogus else max(trade.version, (time_us, seq))
        self._newest[trade.isin] = newest
        return trade

    def _check(self, isin: str, traded: ExchangeTrade, now_us: int) -> Trade:
        fields: dict[str, Any] = {
            "isin": isin,
            "time": traded.time_us,
            "seq": traded.number,
            "price": _plain("price", traded.price),
            "size": _plain("size", traded.size),
            # Of an exchange with several venues the trade says its own.
            "venue": traded.extra.get("venue", self._venue),
            "symbol": traded.extra.get("symbol", traded.symbol),
        }
        if self._numbering is Numbering.UNIQUE and traded.number is not None:
            fields["trade_id"] = check_integer("seq", traded.number)
            fields["seq"] = None
        if fields["seq"] is None:
            # Grows from one trade to the next, and from one run to the next, too.
            self._arrived_us = max(self._arrived_us + 1, now_us)
            fields["seq"] = self._arrived_us
        return _with_extra(fields, traded.extra)

    def _skip(self, name: str) -> None:
        skipped = self.counts.skipped
        is_known = name in skipped or len(skipped) < MOST_SKIP_NAMES
        skipped[name if is_known else OTHER_SKIPS] += 1


def _with_extra(fields: dict[str, Any], extra: Mapping[str, Any]) -> Trade:
    """Return a checked trade of fields, and of what else an exchange says of it."""
    for name, value in extra.items():
        if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
            rule = f"has over {MAX_TEXT_CHARS} characters"
            raise InvalidTrade("bad_field", name, value, rule)
        # None takes the place of what the feed itself says.
        fields.setdefault(name, value)
    return Trade.from_fields(fields)


def _plain(name: str, value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return plain_decimal(value)
    except ValueError as error:
        raise InvalidTrade(f"bad_{name}", name, value, str(error)) from None
