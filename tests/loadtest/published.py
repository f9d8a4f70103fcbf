"""Windows published in real time, and the reference of them."""

import time
from collections import defaultdict
from random import Random

import redis

from loadtest.judge.reference import Change, Reference
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version

ISSUES = make_isins(60)


class Market:
    """Publishes windows of trades drawn by chance, and remembers them."""

    def __init__(self, client: redis.Redis, window_ms: int = 200) -> None:
        self.publisher = Publisher(client, window_ms=window_ms)
        self.window_ms = window_ms
        self.windows: dict[int, tuple[int, float]] = {}
        self.issues: dict[str, list[Change]] = defaultdict(list)
        self._chance = Random(5)
        self._seq = 0

    def publish_window(
        self, share: float = 0.4, *, windows: int = 1, is_lost: bool = False
    ) -> int:
        """Wait for the end of the window under way, publish it, return its offset.

        ``windows``: so many of them with one message, as after an outage; ``is_lost``:
        the message reaches nobody.
        """
        end_ms = (int(time.time() * 1e3) // self.window_ms + 1) * self.window_ms
        time.sleep(max(0.0, end_ms / 1e3 - time.time()))
        return self._publish(end_ms, share, windows, is_lost)

    def publish_part(self, share: float = 0.4) -> int:
        """Publish more of the newest window, as another job would."""
        return self._publish(self.publisher.window or 0, share, 1, False)

    def _publish(self, end_ms: int, share: float, windows: int, is_lost: bool) -> int:
        drawn = [
            [self.row(i, end_ms) for i in ISSUES if self._chance.random() < share]
            for _ in range(windows)
        ]
        self.publisher._publish(drawn, is_lost=is_lost, window=end_ms)
        for place, rows in enumerate(drawn, self.publisher.offset - windows + 1):
            self._note(place, end_ms, rows)
        return self.publisher.offset

    def row(self, isin: str, end_ms: int) -> Row:
        """Return a newer trade of an issue."""
        self._seq += 1
        time_us = end_ms * 1_000 - 100_000 + self._seq
        price = f"{self._chance.randrange(100, 999)}.{self._chance.randrange(10)}0"
        if self._seq % 2:
            price = price.partition(".")[0]
        body = b'{"isin":"%b","time":%d,"seq":%d,"price":%b,"size":1}' % (
            isin.encode(),
            time_us,
            self._seq,
            price.encode(),
        )
        version = encode_version(time_us, self._seq, self._seq)
        return Row(isin, version, b"%d" % self._chance.randrange(1, 9), body)

    def _note(self, offset: int, end_ms: int, rows: list[Row]) -> None:
        self.windows[offset] = end_ms, time.time() * 1e3
        for row in rows:
            text = row.body.decode()
            price = text.partition('"price":')[2].partition(",")[0]
            time_us, seq = int(row.version[:16]), int(row.version[16:35])
            self.issues[row.isin].append(
                Change(offset, time_us, seq, price, row.trades, end_ms - 100.0)
            )

    def reference(self) -> Reference:
        """Return what was published."""
        return Reference(
            self.publisher.epoch, self.windows, self.issues, self.window_ms
        )
