"""A made-up log, run through the whole job before the first real window.

The first batches of a fresh JVM take seconds: classes are loaded, plans and code are
compiled, workers are started. They should not be somebody's prices.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from ingest.trade import Trade
from ingest.tradelog.contract import NO_SERVER, Chunk, Head, LogInfo, Ranges, Tail
from tickthrottle_client.trade_v1 import isin_check_digit

WARMUP_INSTRUMENTS = 600
WARMUP_TRADES = 1_800
"""Trades in a made-up window: two seconds at 900 trades/s."""

BACKLOG_WINDOWS = 3
"""Windows in a made-up batch of a backlog."""


class SyntheticLog:
    """A log of windows that all hold the same number of trades.

    The first ``live`` windows are over one by one, each when the one before it was
    cut; then ``behind`` more are over at once, as after an outage, and the log ends.
    Position n of a partition is its n-th trade, and each window has an equal share.
    """

    margin_ms = 0

    def __init__(
        self, info: LogInfo, window_ms: int, live: int, behind: int = 0
    ) -> None:
        self.info = info
        self._window_ms = window_ms
        self._start_ms = self._cut_ms = info.created_ms // window_ms * window_ms
        self._live_ms = self._start_ms + live * window_ms
        self._end_ms = self._live_ms + behind * window_ms
        self._share = max(1, WARMUP_TRADES // info.partitions)
        numbers = range(WARMUP_INSTRUMENTS)
        self._payloads = [_payload(number, info.created_ms) for number in numbers]

    def server_id(self) -> str:
        """Return nothing: no server has it."""
        return NO_SERVER

    def clock_ms(self) -> int:
        """Return the end of the newest window that is over."""
        next_ms = self._cut_ms + self._window_ms
        return next_ms if next_ms <= self._live_ms else self._end_ms

    def is_read(self, end_ms: int) -> bool:
        """Tell whether nothing is left behind the end of a window."""
        return end_ms >= self._end_ms

    def partitions(self) -> tuple[int, ...]:
        """Return all partitions."""
        return tuple(range(self.info.partitions))

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        """Return the positions at a boundary; past the end, a clock before it."""
        self._cut_ms = max(self._cut_ms, before_ms)
        partitions = tuple(partitions) or self.partitions()
        windows = (before_ms - self._start_ms) // self._window_ms
        ends = (windows * self._share,) * len(partitions)
        return Tail(self._end_ms, partitions, ends, ends)

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> Mapping[int, int]:
        """Return the positions at a time."""
        tail = self.tail(time_ms, partitions)
        return dict(zip(tail.partitions, tail.positions, strict=True))

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, a chunk a partition."""
        for partition, (after, upto) in ranges.items():
            positions = range(after + 1, upto + 1)
            payloads = [self._payloads[p * 7 % WARMUP_INSTRUMENTS] for p in positions]
            chunk = Chunk(
                pa.array(positions, pa.int64()),
                pa.array([self._append_ms(p) for p in positions], pa.int64()),
                pa.array(payloads, pa.binary()),
                upto,
            )
            yield partition, chunk

    def head(self) -> Head:
        """Return the time of the first entry; none went before it."""
        zeros = (0,) * self.info.partitions
        return Head(self._start_ms, self.partitions(), zeros, zeros)

    def trim(self, positions: Mapping[int, int], before_ms: int) -> None:
        """Keep everything: there is nothing to free."""

    def _append_ms(self, position: int) -> int:
        window, place = divmod(position - 1, self._share)
        within_ms = place * self._window_ms // self._share
        return self._start_ms + window * self._window_ms + within_ms


def made_up_instruments() -> Instruments:
    """Return the instrument table of the made-up log, of version 1."""
    entries = (
        InstrumentEntry(
            _isin(n), market=f"M{n % 3}", sector=f"S{n % 30}", prev_close="1100"
        )
        for n in range(WARMUP_INSTRUMENTS)
    )
    return Instruments(entries, version=1)


def _isin(instrument: int) -> str:
    number = f"XX{instrument:09d}"
    return number + isin_check_digit(number)


def _payload(instrument: int, created_ms: int) -> bytes:
    isin = _isin(instrument)
    extra = {"side": "B", "cum_volume": instrument, "cum_value": instrument * 1_000}
    price = str(1_000 + instrument)
    return Trade(isin, created_ms * 1000, instrument, price, "10", extra).to_wire()
