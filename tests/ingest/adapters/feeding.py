"""A feed from a local exchange into a real log, and the log read back."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import redis

from ingest.adapters.adapter import Adapter
from ingest.adapters.run_exchange import at_addresses, find_instruments, run_exchange
from ingest.feed.pacer import FeedReport
from ingest.settings import IngestSettings
from ingest.sources.exchange_options import ExchangeOptions
from tests.conftest import eventually
from tests.logged import logged_in_redis


def settings_of(url: str) -> IngestSettings:
    """Return the settings of a feed into the given server."""
    return IngestSettings(redis_url=url, namespace="test")


def logged(client: redis.Redis) -> list[dict[str, Any]]:
    """Return every trade of the log, decoded without any of our code."""
    entries = logged_in_redis(client, "test")
    return [json.loads(entry.payload, parse_float=Decimal) for entry in entries]


@dataclass
class Running:
    """A feed that runs in a thread."""

    stop: threading.Event = field(default_factory=threading.Event)
    reports: list[FeedReport] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    thread: threading.Thread | None = None

    @property
    def report(self) -> FeedReport:
        """The report of the feed, which has ended."""
        assert not self.errors, self.errors
        return self.reports[0]

    def ended(self) -> bool:
        assert self.thread is not None
        return not self.thread.is_alive()


@contextmanager
def feeding(
    redis_url: str,
    kind: type[Adapter],
    secrets: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Running]:
    """Run a feed; it is stopped at the end of the block, if it has not ended."""
    chosen = ExchangeOptions(**options)
    kind = at_addresses(kind, chosen)
    instruments = find_instruments(kind, chosen)
    running = Running()

    def run() -> None:
        try:
            report = run_exchange(
                *(settings_of(redis_url), kind, instruments, chosen, secrets or {}),
                stop=running.stop,
            )
            running.reports.append(report)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            running.errors.append(error)

    running.thread = threading.Thread(target=run)
    running.thread.start()
    try:
        yield running
    finally:
        running.stop.set()
        running.thread.join(20)


def wait_for(client: redis.Redis, count: int) -> list[dict[str, Any]]:
    """Return the log once it holds so many trades."""

    def enough() -> list[dict[str, Any]] | None:
        found = logged(client)
        return found if len(found) >= count else None

    return eventually(enough) or []
