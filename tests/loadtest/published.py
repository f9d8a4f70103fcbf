"""Windows published in real time, and the reference of them."""

import time
from collections import defaultdict
from functools import reduce
from random import Random

import redis

from loadtest.judge.reference import Change, Reference
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import decode_version, encode_version
from tickthrottle_client.updates_v1 import ALL

INSTRUMENTS = make_isins(60)


class Market:
    """Publishes windows of trades drawn by chance, and remembers them.

    A row stands for up to eight trades; one of nine is of late trades alone. The trades
    of one of five do not count for the range.
    """

    def __init__(self, client: redis.Redis, window_ms: int = 200) -> None:
        self.publisher = Publisher(client, window_ms=window_ms)
        self.window_ms = window_ms
        self.windows: dict[int, tuple[int, float]] = {}
        self.instruments: dict[str, list[Change]] = defaultdict(list)
        self._last: dict[str, Row] = {}
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
            [self.row(i, end_ms) for i in INSTRUMENTS if self._chance.random() < share]
            for _ in range(windows)
        ]
        self.publisher._publish(drawn, is_lost=is_lost, window=end_ms)
        for place, rows in enumerate(drawn, self.publisher.offset - windows + 1):
            self._note(place, end_ms, rows)
        return self.publisher.offset

    def row(self, isin: str, end_ms: int) -> Row:
        """Return an instrument's newer row, or the last one with the sums of others."""
        self._seq += 1
        time_us = end_ms * 1_000 - 100_000 + self._seq
        trades = [self._trade() for _ in range(self._chance.randrange(1, 9))]
        updates = ALL._replace(range=self._chance.random() < 0.8)
        amounts = reduce(Amounts.fold, (Amounts.of_trade(*t, updates) for t in trades))
        sums = RowSums(len(trades), amounts)
        last = self._last.get(isin)
        if last is not None and self._chance.random() < 1 / 9:
            return last._replace(sums=sums.encode())
        price, size = trades[-1]
        body = f'{{"isin":"{isin}","time":{time_us},"seq":{self._seq}'
        body += f',"price":{price},"size":{size}}}'
        version = encode_version(time_us, self._seq, self._seq)
        is_own = sums.trades == 1 and updates == ALL
        encoded = ONE if is_own else sums.encode()
        row = self._last[isin] = Row(isin, version, encoded, body.encode())
        return row

    def _trade(self) -> tuple[str, str]:
        """Return price and size of a trade; some have zeros at the end."""
        places = self._chance.choice(("", f".{self._chance.randrange(10)}0"))
        size = f"0.{self._chance.randrange(1, 10**6)}"
        price = f"{self._chance.randrange(100, 999)}{places}"
        return price, self._chance.choice((size, str(self._chance.randrange(1, 99))))

    def _note(self, offset: int, end_ms: int, rows: list[Row]) -> None:
        self.windows[offset] = end_ms, time.time() * 1e3
        for row in rows:
            text = row.body.decode()
            price = text.partition('"price":')[2].partition(",")[0]
            time_us, seq, _ = decode_version(row.version)
            trades, amounts = row.row_sums
            first_ms = end_ms - 100.0
            change = Change(offset, time_us, seq, price, trades, first_ms, amounts)
            self.instruments[row.isin].append(change)

    def reference(self) -> Reference:
        return Reference(
            self.publisher.epoch, self.windows, self.instruments, self.window_ms
        )
