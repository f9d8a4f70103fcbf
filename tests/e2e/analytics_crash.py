"""The analytics job killed for real, while a feed goes on; bars and moves compared."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, Self

import orjson
import redis

from ingest.redis_keys import AnalyticsKeys
from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.conftest import PATIENCE, eventually
from tests.e2e.logged_bars import log_entries, stored_bars
from tests.e2e.processes import Running, running
from tests.gateway.samples import make_isins
from tests.quick_java import QUICK_JAVA
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.bar_oracle import Rules
from tests.throttle.analytics.moves import move_oracle
from tests.throttle.analytics.moves.move_oracle import MoveRules, moves_in
from throttle.contract.tally import TallyBook

POINTS = ("planned", "state_written", "published", "at_random")
"""Spark has written down where the batch ends; it has written the state; Redis has
the batch and Spark does not know; any moment."""

PARTITIONS = 2

PRODUCTS = ("bars", "movers", "moves")
MOVES = MoveRules(Fraction(12), span_us=2_000_000, batch_ms=1_000)
ISINS = make_isins(15)
"""What the feed's trades are of."""

STANDS = min(ISINS)
"""No trade of it is taken back: its prices are those that Spark's state holds."""

Compare = Callable[[Mapping[tuple[str, int], Mapping[str, Any]]], object]


class AnalyticsCrasher:
    """A job, its server and a feed with disorder and lateness. A context manager.

    Of twenty trades one corrects another one, and one is cancelled.
    """

    def __init__(self, client: redis.Redis, url: str, folder: Path) -> None:
        self._client = client
        self._keys = AnalyticsKeys("tt")
        self._folder = folder
        self._environment = {
            **QUICK_JAVA,
            "REDIS_URL": url,
            "TICKTHROTTLE_STATE_DIR": str(folder / "state"),
            "TICKTHROTTLE_ANALYTICS": ",".join(PRODUCTS),
            "TICKTHROTTLE_ANALYTICS_BATCH_MS": "1000",
            "TICKTHROTTLE_MOVERS_SPAN_S": "20",
            "TICKTHROTTLE_MOVERS_EVERY_S": "5",
            "TICKTHROTTLE_MOVE_PERCENT": "12",
            "TICKTHROTTLE_MOVE_SPAN_MS": "2000",
            "TICKTHROTTLE_EVENTS_KEPT": "1000000",
        }
        self._writer = RedisLogWriter(
            client, "tt", open_log(client, "tt", PARTITIONS), 10**6
        )
        self._is_over = threading.Event()
        self._is_paused = threading.Event()
        self._appending = threading.Lock()
        self._stack = ExitStack()
        self._job: Running | None = None
        self._thread = threading.Thread(target=self._feed)

    def __enter__(self) -> Self:
        self._thread.start()
        self._start()
        eventually(lambda: all(map(self._cut_ms, PRODUCTS)), 90)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._stack.close()

    def _start(self) -> None:
        self._stack.close()
        job = running(self._folder, "analytics", **self._environment)
        self._job = self._stack.enter_context(job)

    def _feed(self) -> None:
        chance, seq = Random(3), 0
        newest: dict[str, int] = {}
        while not self._is_over.wait(0.05):
            with self._appending:
                if self._is_paused.is_set():
                    continue
                now_us = time.time_ns() // 1_000
                trades = []
                for number in range(20):
                    seq += 1
                    isin = chance.choice(ISINS)
                    late_us = chance.choice((0, 0, 0, 2_000_000, 90_000_000))
                    price = str(chance.randrange(900, 1_100))
                    extra: dict[str, Any] = {}
                    if number == 7 and isin in newest:
                        extra = {"corrects": newest[isin]}
                    fields = isin, now_us - late_us, seq, price, "1.5", extra
                    trades.append(Trade(*fields))
                    if isin != STANDS:
                        newest[isin] = seq
                isin = chance.choice([*newest])
                cancel = {"isin": isin, "time": now_us, "cancels": newest.pop(isin)}
                trades.append(Trade.from_fields(cancel))
                self._writer.append([(one.isin, one.to_wire()) for one in trades])

    def crash_once(
        self, point: str, chance: Random, compare_too: Compare = lambda _: None
    ) -> int:
        """Kill the job at a point, start it again, compare so many bars.

        ``compare_too`` compares what others have with the oracle's bars.
        """
        assert self._job is not None
        self._wait_for(point, chance)
        self._job.kill()
        self._start()
        return self._compare(compare_too)

    def _wait_for(self, point: str, chance: Random) -> None:
        if point == "at_random":
            self._is_over.wait(chance.uniform(0, 2))
            return
        product = chance.choice(PRODUCTS)
        before = self._mark(point, product)
        until_s = time.monotonic() + 60 * PATIENCE
        while self._mark(point, product) == before and time.monotonic() < until_s:
            time.sleep(0.002)

    def _mark(self, point: str, product: str) -> Any:
        if point == "published":
            return self._cut_ms(product)
        folder = self._folder / "state" / "analytics" / product
        part = "offsets" if point == "planned" else "state/0/0"
        names = (file.name for file in (folder / part).glob("[0-9]*"))
        # As numbers: 9 comes before 10.
        return max((int(re.split(r"\D", name)[0]) for name in names), default=-1)

    def _cut_ms(self, product: str) -> int:
        cut: Any = self._client.hget(self._keys.progress(product), "cut")
        return 0 if cut is None else int(orjson.loads(cut)["end_ms"])

    def _compare(self, compare_too: Compare) -> int:
        """Compare bars, moves and the books with what oracles make of the log."""
        with self._quiet():
            upto_ms = time.time_ns() // 1_000_000
            # Trades of this moment are judged when they have been waited for.
            upto_ms += MOVES.close_after_ms
            for product in ("bars", "moves"):
                eventually(lambda p=product: self._cut_ms(p) > upto_ms, 120)
            entries = list(log_entries(self._client, PARTITIONS))
            expected, too_late = bar_oracle.bars(entries, Rules())
            found = dict(stored_bars(self._client, self._keys))
            assert found == expected
            book = self._books("bars")
            assert sum(t.read for t in book.partitions.values()) == len(entries)
            trades = [entry for entry in entries if entry.cancels is None]
            tallies = book.partitions.values()
            assert sum(t.counted for t in tallies) == len(trades) - too_late.total()
            # Moves do not follow what is taken back.
            moves, moves_too_late = move_oracle.moves(trades, MOVES)
            assert moves_in(self._client, self._keys) == moves
            of_moves = self._books("moves").partitions
            assert {p: t.too_late for p, t in of_moves.items()} == moves_too_late
            self._books("movers")
            compare_too(expected)
        return len(found)

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        with self._appending:
            self._is_paused.set()
        yield
        self._is_paused.clear()

    def _books(self, product: str) -> TallyBook:
        stored: Any = self._client.hgetall(self._keys.ledger(product))
        book = TallyBook.decode(product, stored)
        assert book is not None
        assert book.problems() == []
        return book
