"""Recorded tapes as a schedule of events."""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from ingest.sources.event import Event, Refusals
from ingest.sources.feed_options import FeedOptions, ProfileOption
from ingest.sources.tape import read_tape
from ingest.trade import Trade

BETWEEN_PASSES_US = 1_000
"""From the newest stamp of a pass to the begin of the next."""


class ReplayOptions(FeedOptions):
    """How tapes are played."""

    speed: float = Field(1.0, ge=0.001, le=1_000_000)
    """How many times faster than recorded."""

    rate: float | None = Field(None, ge=0.001, le=1_000_000)
    """Trades per second, whatever the tape's own pace is."""

    stamp: Literal["now", "recorded"] = "now"
    """``now``: exchange times move to the present and follow the pace; equal ones
    stay equal and none overtakes another. At a fixed ``rate`` a trade is stamped with
    its due time. ``recorded``: they stay as they are, so from the second pass on
    every trade is stale.
    """

    loop: int = Field(1, ge=0, le=10**9)
    """How often to play the tapes; 0: without end."""

    max_gap_s: float | None = Field(None, ge=0.001, le=1e9)
    """No silence of the tape lasts longer than this, in seconds of the tape."""

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


def replay(
    tapes: Sequence[Path],
    options: ReplayOptions,
    start_us: int,
    refusals: Refusals,
    read: Callable[[Path, Refusals], Iterator[Trade]] = read_tape,
) -> Iterator[Event]:
    """Yield the tapes' trades as events of a feed that starts at ``start_us``.

    Each tape begins with the replay and has its own gaps and passes; their trades
    come merged by their due times. ``start_us`` is in microseconds since 1970 UTC. A
    pass begins 1 ms after the newest stamp of the pass before; ``refusals`` counts the
    bad lines of every pass; ``read`` reads a tape. Raises TapeError as ``read_tape``
    does.
    """
    restamp = _restamp if options.stamp == "now" else _keep
    played = [_played(options, tape, refusals, read) for tape in tapes]
    merged = merge(*played, key=itemgetter(0)) if len(played) > 1 else played[0]
    for due_us, offset_us, trade in _paced(options, merged):
        yield Event(due_us, trade.isin, restamp(trade, start_us + offset_us).to_wire())


_Due = tuple[int, int, Trade]
"""A trade with when it is due and its stamp, both in us since the start."""


def _paced(options: ReplayOptions, merged: Iterator[_Due]) -> Iterator[_Due]:
    if options.profile is not None:
        # Whichever ends first: the profile or the tapes.
        dues_us = options.profile.dues_us()
        for due_us, (_, _, trade) in zip(dues_us, merged, strict=False):
            yield due_us, due_us, trade
    elif options.rate is not None:
        for played, (_, _, trade) in enumerate(merged):
            due_us = int(played * 1e6 / options.rate)
            yield due_us, due_us, trade
    else:
        yield from merged


def _played(
    options: ReplayOptions,
    path: Path,
    refusals: Refusals,
    read: Callable[[Path, Refusals], Iterator[Trade]],
) -> Iterator[_Due]:
    """Yield all passes of one tape, by its own times."""
    pace = _ByTape(options)
    for _ in range(options.loop) if options.loop else count():
        pace.rewind()
        for trade in read(path, refusals):
            yield *pace.schedule(trade), trade


def _restamp(trade: Trade, time_us: int) -> Trade:
    return Trade(trade.isin, time_us, trade.seq, trade.price, trade.size, trade.extra)


def _keep(trade: Trade, _: int) -> Trade:
    return trade


class _ByTape:
    """By the tape's own times: a stamp may step back, a due time never does."""

    def __init__(self, options: ReplayOptions) -> None:
        self._speed = options.speed
        self._silence = _Silence(options.max_gap_s)
        self._due_us = 0
        self._newest_us = 0
        self._lowest_us = 0
        self._begin_us = 0

    def rewind(self) -> None:
        """Begin the next pass behind the newest stamp of the one before."""
        if self._silence.started:
            # A tape may step back below its first stamp: leave room for that too.
            self._begin_us = self._newest_us + BETWEEN_PASSES_US - self._lowest_us
        self._silence.rewind()

    def schedule(self, trade: Trade) -> tuple[int, int]:
        """Return when the trade is due and its stamp, both in us since the start."""
        along_us = int(self._silence.shorten(trade.time_us) // self._speed)
        self._lowest_us = min(self._lowest_us, along_us)
        offset_us = self._begin_us + along_us
        self._newest_us = max(self._newest_us, offset_us)
        self._due_us = max(self._due_us, offset_us)
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
