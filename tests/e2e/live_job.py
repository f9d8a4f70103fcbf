"""A feed and a job in a thread: no Spark, the product's own rules, in real time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

import redis

from ingest.instrument_table.instrument_store import TableAway
from ingest.redis_keys import Keys
from tests.conftest import eventually
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from throttle.publish.publisher import StreamLost
from throttle.testing.driver import ThrottleDriver

INSTRUMENTS = (SAMSUNG, HYNIX, NAVER)
LEASE = Keys("tt").lease("throttle")
STEP_S = 0.05


class LiveJob:
    """A feed and a job that each may be stopped and started again.

    Both wait while Redis is away, as the real ones do.
    """

    def __init__(
        self, driver: ThrottleDriver, client: redis.Redis, start_ms: int
    ) -> None:
        self._driver = driver
        self._client = client
        self._start_ms = start_ms
        # Held for a step: whoever has it knows that nothing else is under way.
        self._still = Lock()
        self._feeds = self._runs = True
        self._ended = Event()
        self._seq = 0
        self._hold_lease()

    def stop_feed(self) -> None:
        """No trade comes any more."""
        self._feeds = False

    def start_feed(self) -> None:
        """Trades come again."""
        self._feeds = True

    def kill_job(self) -> None:
        """End the job; its lease has run out."""
        with self._still:
            self._runs = False
            self._client.delete(LEASE)

    def start_job(self) -> None:
        """Start the job again, where it stopped."""
        with self._still:
            self._driver.restart_job()
            self._hold_lease()
            self._runs = True

    def refuse(self, payload: bytes) -> None:
        """Append what is no trade."""
        with self._still:
            self._driver.payload(payload, at_ms=self._now_ms())

    def run(self) -> None:
        """Append and publish until the end."""
        while not self._ended.wait(STEP_S):
            with self._still, suppress(redis.RedisError, TableAway):
                try:
                    self._step(self._now_ms())
                except StreamLost:
                    # Its server was started again: it takes the lead anew, as a job.
                    self._client.delete(LEASE)
                    self._driver.restart_job()
                    self._hold_lease()

    def end(self) -> None:
        """End ``run``."""
        self._ended.set()

    def _hold_lease(self) -> None:
        # A real job renews it.
        self._client.persist(LEASE)

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 - self._start_ms

    def _step(self, at_ms: int) -> None:
        if self._feeds:
            for isin in INSTRUMENTS:
                self._seq += 1
                self._driver.trade(isin, f"{self._seq}.50", at_ms=at_ms, seq=self._seq)
        if self._runs:
            self._driver.turn_clock(at_ms)


@contextmanager
def live_job(url: str, client: redis.Redis, window_ms: int) -> Iterator[LiveJob]:
    """Run a feed and a job until the block ends; a first window is published."""
    now_ms = time.time_ns() // 1_000_000
    start_ms = now_ms - now_ms % window_ms
    with ThrottleDriver(
        redis_url=url, start_ms=start_ms, window_ms=window_ms, partitions=2
    ) as driver:
        job = LiveJob(driver, client, start_ms)
        thread = Thread(target=job.run)
        thread.start()
        try:
            eventually(driver.windows)
            yield job
        finally:
            job.end()
            thread.join(timeout=10)
            assert not thread.is_alive()
