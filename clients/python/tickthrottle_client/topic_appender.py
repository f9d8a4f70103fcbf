"""Appends to a trade log that is a topic of Kafka, without holding up an event loop."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from tickthrottle_client.kafka_client import open_topic
from tickthrottle_client.kafka_topic import KafkaTopic
from tickthrottle_client.log_v1 import LogInfo, LogUnusable
from tickthrottle_client.receipt_v1 import AppendTally
from tickthrottle_client.topic_writer import TopicWriter

T = TypeVar("T")

_LOOKS_EVERY_S = 1.0


class TopicAppender:
    """A ``TopicWriter`` in a thread of its own: one thing at a time, in order."""

    most_entries = 5_000
    """Of one append."""

    dropped_at_cap = 0

    def __init__(
        self, topic: KafkaTopic, writer: TopicWriter, thread: ThreadPoolExecutor
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._thread = thread
        self._looked_at_s = time.monotonic()

    @classmethod
    async def open(cls, topic: KafkaTopic) -> Self:
        """Open a topic, which has to be there. Raises LogAway and LogUnusable."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="trades")
        try:
            writer = await _call(thread, lambda: TopicWriter.open(topic))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(topic, writer, thread)

    @property
    def info(self) -> LogInfo:
        """The topic's identity."""
        return self._writer.info

    @property
    def tallies(self) -> list[AppendTally]:
        """What became of what was appended, by partition."""
        return self._writer.tallies

    @property
    def refused(self) -> Counter[str]:
        """Entries that the topic can never take, by reason."""
        return self._writer.refused

    async def append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Append (ISIN, payload) pairs in order.

        Raises LogAway after a second: to append the very same list again waits on.
        Raises LogUnusable when the topic is gone or another one, or refuses; that is
        looked at once a second.
        """
        await _call(self._thread, lambda: self._append(entries))

    async def abandon(self) -> None:
        """Give up what is under way: it is in doubt from now on."""
        await _call(self._thread, self._writer.abandon)

    async def close(self) -> None:
        """Disconnect."""
        await _call(self._thread, self._writer.close)
        self._thread.shutdown(wait=False)

    def _append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        if time.monotonic() - self._looked_at_s >= _LOOKS_EVERY_S:
            self._look()
        self._writer.append(entries)

    def _look(self) -> None:
        """Raise LogUnusable if the topic was deleted and made again under its name."""
        found = open_topic(self._topic).log_id
        if found != self.info.log_id:
            raise LogUnusable(
                f"{self._topic} is another one now: it was {self.info.log_id}, it is "
                f"{found}; start anew to append to it"
            )
        self._looked_at_s = time.monotonic()


async def _call(thread: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, function)
