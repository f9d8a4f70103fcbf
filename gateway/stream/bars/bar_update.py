"""Bars that changed, as bytes for any number of clients. Pure.

A bar is encoded once, a frame once for all who watch the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import orjson

from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import BarKey
from ingest.series import is_series
from throttle.contract.bar_intervals import INTERVALS_MS
from tickthrottle_client.tick_v1 import ALL


class BarId(NamedTuple):
    """Names one bar, whatever becomes of it; ``start_ms`` is when it begins."""

    interval: str
    isin: str
    start_ms: int


class BarRow(NamedTuple):
    """One state of a bar: of two of the same bar, the greater ``version`` is newer.

    It is its edition, and whether it is closed. ``body`` is the JSON object that
    clients get.
    """

    id: BarId
    version: tuple[int, int, bool]
    body: bytes

    @property
    def is_closed(self) -> bool:
        """Whether the log's clock has passed the bar's end."""
        return self.version[-1]


def has_ended(bar: BarId, moment_ms: int) -> bool:
    """Say whether a closed bar had ended by then; a day, if its closing is enough."""
    return bar.start_ms + INTERVALS_MS.get(bar.interval, 0) <= moment_ms


class BarKeySet:
    """What a client watches: intervals of all instruments, and of some instruments.

    Clients with equal keys share one, and with it their frames.
    """

    __slots__ = ("keys", "named", "whole")

    def __init__(self, keys: tuple[BarKey, ...]) -> None:
        self.keys = keys
        self.whole = tuple(key.interval for key in keys if key.isin == ALL)
        self.named = frozenset(
            key
            for key in keys
            if is_series(key.isin)
            or (key.isin != ALL and key.interval not in self.whole)
        )

    def wants(self, interval: str, isin: str) -> bool:
        """Say whether an instrument's bars of this length are among what is watched."""
        if interval in self.whole and not is_series(isin):
            return True
        return BarKey(interval, isin) in self.named


NO_BARS = BarKeySet(())


class BarUpdate:
    """The bars that one message has changed, of every interval that anybody watches."""

    __slots__ = ("_by_interval", "_by_key", "_frames", "position")

    def __init__(self, position: BarPosition, rows: Iterable[BarRow]) -> None:
        self.position = position
        self._by_key: Mapping[BarKey, list[BarRow]] = defaultdict(list)
        self._by_interval: Mapping[str, list[BarRow]] = defaultdict(list)
        for row in rows:
            self._by_key[BarKey(row.id.interval, row.id.isin)].append(row)
            # A series is no instrument: who watches all watches none.
            if not is_series(row.id.isin):
                self._by_interval[row.id.interval].append(row)
        self._frames: dict[BarKeySet, bytes] = {}

    def rows(self, key_set: BarKeySet) -> Iterator[BarRow]:
        """Yield what of the update is for a key set."""
        for interval in key_set.whole:
            yield from self._by_interval.get(interval, ())
        for key in sorted(key_set.named & self._by_key.keys()):
            yield from self._by_key[key]

    def touches(self, key_set: BarKeySet) -> bool:
        """Say whether the update holds anything for a key set."""
        return next(self.rows(key_set), None) is not None

    def frame(self, key_set: BarKeySet) -> bytes:
        """Return the frame for a key set; all who share it get the same bytes."""
        frame = self._frames.get(key_set)
        if frame is None:
            bodies = (row.body for row in self.rows(key_set))
            frame = self._frames[key_set] = bars_frame(self.position, bodies)
        return frame


def bars_frame(position: BarPosition, bodies: Iterable[bytes]) -> bytes:
    """Build a frame of bars that changed; everything up to ``position`` is sent."""
    return b'{"type":"bars",%b,"bars":[%b]}' % (_encode(position), b",".join(bodies))


def bar_snapshot_frame(
    position: BarPosition, bodies: Iterable[bytes], *, final: bool, resumed: bool
) -> bytes:
    """Build one piece of the bars there are when somebody subscribes."""
    return b'{"type":"bars",%b,"snapshot":true,"final":%b,"resumed":%b,"bars":[%b]}' % (
        _encode(position),
        orjson.dumps(final),
        orjson.dumps(resumed),
        b",".join(bodies),
    )


def _encode(position: BarPosition) -> bytes:
    epoch = orjson.dumps(position.epoch)
    return b'"epoch":%b,"sequence":%d' % (epoch, position.sequence)
