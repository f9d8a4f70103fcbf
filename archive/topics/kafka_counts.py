"""Counts what an archive in topics of Kafka holds, by reading what is committed."""

from collections import Counter
from collections.abc import Iterator
from datetime import date

import orjson
from confluent_kafka import Message

from archive.account import Place
from archive.bar_account import BarKey, Edition
from archive.contract.archive_gap import ArchiveGap, find_gaps, gaps_within
from archive.contract.segment import Product, Segment, day_of
from archive.storing.archive_sink import SinkAway, SinkRefused
from archive.topics.relay_topics import RelayTopics
from archive.topics.relayed_records import (
    BAR_TOPIC,
    ROW_TOPIC,
    WINDOW_TOPIC,
    read_entry,
    said_in,
)

_END_OF_TIME_MS = 2**53


class KafkaCounts:
    """What is relayed, by the records. Methods raise SinkRefused."""

    def __init__(self, topics: RelayTopics) -> None:
        self._topics = topics

    def segments(self, product: Product = "windows") -> list[Segment]:
        """Return each day's runs of windows, or of the bar log, without a hole."""
        kind = WINDOW_TOPIC if product == "windows" else BAR_TOPIC
        entries = {self._entry(kind, m) for m in self._records(kind)}
        runs: list[Segment] = []
        for entry in sorted(entries):
            is_next = runs and runs[-1].is_followed_by(entry)
            if is_next and day_of(runs[-1].last_ms) == day_of(entry.first_ms):
                runs[-1] = runs[-1].join(entry)
            else:
                runs.append(entry)
        return runs

    def gaps(
        self, product: Product, first_ms: int = 0, last_ms: int = _END_OF_TIME_MS
    ) -> list[ArchiveGap]:
        """Return the gaps between two ends."""
        gaps = find_gaps(self.segments(product), product)
        return gaps_within(gaps, first_ms, last_ms)

    def damage(self) -> list[str]:
        """Return nothing: brokers look after their own files."""
        return []

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]:
        """Return place, end and number of rows of each window, as told in its record.

        A window that is there twice is returned twice.
        """
        found = []
        for message in self._records(WINDOW_TOPIC, first_ms, last_ms):
            entry = self._entry(WINDOW_TOPIC, message)
            rows = orjson.loads(message.value() or b"{}")["rows"]
            found.append(((entry.epoch, entry.first), entry.last_ms, int(rows)))
        return found

    def rows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int]]:
        """Return the rows of each place, counted one by one."""
        counts = Counter[Place]()
        for message in self._records(ROW_TOPIC, first_ms, last_ms):
            headers = message.headers()
            counts[said_in(headers, "epoch"), int(said_in(headers, "offset"))] += 1
        return list(counts.items())

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]:
        """Return the newest edition of each bar that ends then."""
        found: dict[BarKey, Edition] = {}
        for message in self._records(BAR_TOPIC, first_ms, last_ms):
            bar = orjson.loads(message.value() or b"{}")
            key = bar["isin"], bar["start"], bar["width_ms"]
            edition = bar["revision"], bar["trades"]
            found[key] = max(edition, found.get(key, edition))
        return found

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        """Return how many bars of each width end then."""
        return Counter(width for _, _, width in self.bars(first_ms, last_ms))

    def bar_lines(self) -> dict[date, int]:
        """Return how many lines were relayed of each day, an amended bar each time."""
        return Counter(
            day_of(self._entry(BAR_TOPIC, message).last_ms)
            for message in self._records(BAR_TOPIC)
        )

    def _records(
        self, kind: str, first_ms: int = 0, last_ms: int = _END_OF_TIME_MS
    ) -> Iterator[Message]:
        try:
            yield from self._topics.records(kind, first_ms, last_ms)
        except SinkAway as error:
            raise SinkRefused(str(error)) from None

    def _entry(self, kind: str, message: Message) -> Segment:
        try:
            return read_entry(message.headers())
        except ValueError as error:
            raise SinkRefused(f"{self._topics.topic(kind)}: {error}") from None
