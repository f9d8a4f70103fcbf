"""Recorded tapes as a schedule of events."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from ingest.files.file_form import FrozenOptions
from ingest.sources.event import Event, Refusals
from ingest.sources.rate_profile import ProfileOption
from ingest.sources.tape import TapeError, read_tape
from ingest.sources.tape_order import (
    SORTED_BYTES,
    TapeOrder,
    TooManyTrades,
    sort_trades,
    span_words,
)
from ingest.trade import LATEST_TIME_US, Trade

BETWEEN_PASSES_US = 1_000
"""From the newest stamp of a pass to the begin of the next."""

SHORT_US = 1_000_000
"""A tape that is shorter than this has no length to be repeated by."""

SHORT_RATE = 1_000
"""Most trades a second of a short tape that is repeated, at speed 1."""

GAP_US = 60_000_000
"""A longer wait for the next trade is told."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Tell = Callable[[str], None]
"""Takes one sentence about a tape."""

Read = Callable[[Path, Refusals], Iterator[Trade]]
"""Reads a tape as ``read_tape`` does."""


class ReplayOptions(FrozenOptions):
    """How tapes are played."""

    speed: float = Field(1.0, ge=0.001, le=1_000_000)
    """How many times faster than recorded. Windows are cut by the time at which trades
    come: at 10 a window of two seconds holds twenty seconds of the tape.
    """

    rate: float | None = Field(None, ge=0.001, le=1_000_000)
    """Trades per second, whatever the tape's own pace is."""

    stamp: Literal["now", "recorded"] = "now"
    """``now``: exchange times move to the present and follow the pace; equal ones
    stay equal and none overtakes another. At a fixed ``rate`` a trade is stamped with
    its due time. ``recorded``: they stay as they are, so from the second pass on
    no price moves: its trades are stale.
    """

    loop: int = Field(1, ge=0, le=10**9)
    """How often to play the tapes; 0: without end."""

    max_gap_s: float | None = Field(None, ge=0.001, le=1e9)
    """No silence of the tape lasts longer than this, in seconds of the tape."""

    order: Literal["time", "recorded"] = "time"
    """``time``: a tape that is not in the order of time, sorted by instrument perhaps,
    is sorted if that takes at most 512 MiB. ``recorded``: it is played as it stands.
    """

    profile: ProfileOption | None = None
    """How the rate goes over time, whatever the tape's own times are, such as
    900:60s,900..5000:60s or opening(900):600s,1700/100ms@30s; see docs/running.md. At
    its end the replay is over, wherever the tape is then. A trade is stamped with its
    due time.
    """

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.rate is not None and self.profile is not None:
            raise ValueError("a fixed rate has no use for a profile")
        if self.rate is not None or self.profile is not None:
            pace = "a fixed rate" if self.profile is None else "a profile"
            if self.speed != 1.0 or self.max_gap_s is not None:
                raise ValueError(f"{pace} has no use for speed or max_gap_s")
        return self

    @property
    def is_at_own_pace(self) -> bool:
        """Whether the tape's own times say when a trade is due."""
        return self.rate is None and self.profile is None


def least_pass_us(length_us: int, trades: int, speed: float) -> int:
    """Return how long a pass takes at least, from its begin to that of the next.

    ``length_us`` is how long its trades are played. A tape shorter than a second takes
    a second, and one for each 1,000 trades, so that it is not repeated as fast as the
    machine can.
    """
    if length_us * speed >= SHORT_US:
        return 0
    return int(max(SHORT_US, trades * 1_000_000 // SHORT_RATE) / speed)


class Replay:
    """Tapes to be played: looked through when it is made, and sorted if need be.

    ``tell`` is told of tapes that are not in order, and of gaps over a minute.
    """

    def __init__(
        self,
        tapes: Sequence[Path],
        options: ReplayOptions,
        read: Read = read_tape,
        tell: Tell = lambda _: None,
    ) -> None:
        self._options = options
        self._tell = tell
        most_bytes = SORTED_BYTES // len(tapes)
        self._readers = [
            _TapeReader(tape, options, read, most_bytes, tell) for tape in tapes
        ]

    def events(self, start_us: int, refusals: Refusals) -> Iterator[Event]:
        """Yield the tapes' trades as events of a feed that starts at ``start_us``.

        Each tape begins with the replay and has its own gaps and passes; their trades
        come merged by their due times. ``start_us`` is in microseconds since 1970 UTC.
        A pass begins 1 ms after the newest stamp of the pass before; ``refusals``
        counts the bad lines of every pass. Raises TapeError as ``read_tape`` does.
        """
        keeps_stamps = self._options.stamp == "recorded"
        played = [_played(self._options, reader, refusals) for reader in self._readers]
        merged = merge(*played, key=itemgetter(0)) if len(played) > 1 else played[0]
        if self._options.is_at_own_pace:
            merged = _telling_gaps(merged, start_us, self._tell)
        for due_us, at_us, trade in _paced(self._options, merged):
            if not keeps_stamps:
                own = (trade.seq, trade.price, trade.size, trade.extra)
                trade = Trade(trade.isin, start_us + at_us, *own)
            yield Event(due_us, trade.isin, trade.to_wire())


_Due = tuple[int, int, Trade]
"""A trade with when it is due and its stamp, both in us since the start."""


def _paced(options: ReplayOptions, merged: Iterator[_Due]) -> Iterator[_Due]:
    if options.profile is not None:
        dues_us = options.profile.dues_us()
    elif (rate := options.rate) is not None:
        dues_us = (int(played * 1e6 / rate) for played in count())
    else:
        yield from merged
        return
    # Whichever ends first: the profile or the tapes.
    for due_us, (_, _, trade) in zip(dues_us, merged, strict=False):
        yield due_us, due_us, trade


def _telling_gaps(merged: Iterator[_Due], start_us: int, tell: Tell) -> Iterator[_Due]:
    before_us = 0
    for due in merged:
        wait_us = due[0] - before_us
        if wait_us > GAP_US:
            at_us = start_us + due[0]
            moment = _EPOCH + timedelta(microseconds=min(at_us, LATEST_TIME_US))
            tell(
                f"a gap: the next trade is due in {span_words(wait_us)}, at "
                f"{moment:%Y-%m-%d %H:%M:%S} UTC{' or later' * (moment.year > 2099)}; "
                "--max-gap 10 makes it 10 seconds of the tape"
            )
        before_us = due[0]
        yield due


def _played(
    options: ReplayOptions, reader: "_TapeReader", refusals: Refusals
) -> Iterator[_Due]:
    pace = _ByTape(options)
    for number in range(options.loop) if options.loop else count():
        pace.rewind()
        if number == 1 and options.is_at_own_pace:
            reader.tell_length(pace.least_pass_us)
        for trade in reader.read(refusals):
            yield *pace.schedule(trade), trade


class _TapeReader:
    """Reads one tape pass by pass, sorted if it has to be, and tells what it is."""

    def __init__(
        self,
        path: Path,
        options: ReplayOptions,
        read: Read,
        most_bytes: int,
        tell: Tell,
    ) -> None:
        self._path = path
        self._read = read
        self._most_bytes = most_bytes
        self._say = tell
        self._watches = options.is_at_own_pace
        self._sorted: list[bytes] | None = None
        self._tally = Refusals()
        self._faults: list[TapeError] = []
        # What comes from a stream can be read once only.
        if self._watches and options.order == "time" and path.is_file():
            self._look()

    def read(self, refusals: Refusals) -> Iterator[Trade]:
        """Yield the trades of a pass. Raises TapeError."""
        if self._sorted is None:
            yield from self._watched(self._read(self._path, refusals))
            return
        refusals.take_over(self._tally)
        yield from map(Trade.from_wire, self._sorted)
        if self._faults:
            raise self._faults[0]

    def tell_length(self, least_us: int) -> None:
        """Tell of a tape that is repeated and has no length of its own."""
        if least_us:
            self._tell(
                f"is shorter than a second: a pass takes {span_words(least_us)}. "
                "--rate has a pace of its own"
            )

    def _look(self) -> None:
        order = TapeOrder()
        for trade in _until_fault(self._read(self._path, Refusals()), []):
            order.add(trade)
            if order.is_broken or order.is_clear:
                break
        if order.is_broken:
            self._watches = False
            what = "it is sorted"
            if not self._sort():
                what = "too large to be sorted, it is played as it is"
            self._tell(f"is not in the order of time: {order.first}; {what}")
        elif order.first is not None:
            self._tell(f"{order.first}: it is played in its place, and no price")

    def _sort(self) -> bool:
        trades = _until_fault(self._read(self._path, self._tally), self._faults)
        try:
            in_order = sort_trades(trades, self._most_bytes)
            self._sorted = [payload for _, payload in in_order]
        except TooManyTrades:
            return False
        return True

    def _watched(self, trades: Iterator[Trade]) -> Iterator[Trade]:
        """Yield trades; tell once if they turn out not to be in order."""
        order = TapeOrder()
        while self._watches and (trade := next(trades, None)) is not None:
            order.add(trade)
            yield trade
            if order.is_broken:
                self._watches = False
                rule = f"is not in the order of time: {order.first}; played as it is"
                self._tell(rule)
        yield from trades

    def _tell(self, rule: str) -> None:
        self._say(f"tape {self._path}: {rule}")


def _until_fault(trades: Iterator[Trade], faults: list[TapeError]) -> Iterator[Trade]:
    """Yield trades up to what cannot be read, which becomes the only fault."""
    try:
        yield from trades
    except TapeError as error:
        faults.append(error)


class _ByTape:
    """By the tape's own times: a stamp may step back, a due time never does."""

    def __init__(self, options: ReplayOptions) -> None:
        self._speed = options.speed
        self._silence = _Silence(options.max_gap_s)
        self._due_us = 0
        self._newest_us = 0
        self._lowest_us = 0
        self._begin_us = 0
        self._trades = 0
        self.least_pass_us = 0
        """How long the last pass takes at least, 0 if as long as its trades."""

    def rewind(self) -> None:
        """Begin the next pass behind the newest stamp of the one before."""
        if self._silence.started:
            length_us = self._newest_us - self._begin_us
            self.least_pass_us = least_pass_us(length_us, self._trades, self._speed)
            # A tape may step back below its first stamp: leave room for that too.
            after_us = self._newest_us + BETWEEN_PASSES_US - self._lowest_us
            self._begin_us = max(after_us, self._begin_us + self.least_pass_us)
        self._trades = 0
        self._silence.rewind()

    def schedule(self, trade: Trade) -> tuple[int, int]:
        """Return when the trade is due and its stamp, both in us since the start."""
        along_us = int(self._silence.shorten(trade.time_us) // self._speed)
        self._lowest_us = min(self._lowest_us, along_us)
        offset_us = self._begin_us + along_us
        self._newest_us = max(self._newest_us, offset_us)
        self._due_us = max(self._due_us, offset_us)
        self._trades += 1
        return self._due_us, offset_us


class _Silence:
    """Tape times counted from the first one, with long gaps shortened."""

    def __init__(self, max_gap_s: float | None) -> None:
        self._max_gap_us = None if max_gap_s is None else int(max_gap_s * 1e6)
        self.started = False
        self.rewind()

    def rewind(self) -> None:
        self._first_us: int | None = None
        self._newest_us = 0
        self._cut_us = self._cut_before_us = self._gap_from_us = 0

    def shorten(self, time_us: int) -> int:
        """Return where a tape time stands; never swaps two of them."""
        if self._first_us is None:
            self._first_us = self._newest_us = self._gap_from_us = time_us
            self.started = True
        gap_us = time_us - self._newest_us
        if self._max_gap_us is not None and gap_us > self._max_gap_us:
            self._gap_from_us = self._newest_us
            self._cut_before_us = self._cut_us
            self._cut_us += gap_us - self._max_gap_us
        self._newest_us = max(self._newest_us, time_us)
        along_us = time_us - self._cut_us
        if time_us <= self._gap_from_us:
            # Late, from before the gap: as it would have been without it.
            along_us = time_us - self._cut_before_us
        else:
            along_us = max(along_us, self._gap_from_us - self._cut_before_us)
        return along_us - self._first_us
