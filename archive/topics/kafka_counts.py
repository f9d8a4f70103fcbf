"""Counts what an archive in topics of Kafka holds, by reading what is committed."""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from functools import reduce
from typing import Any

import orjson
from confluent_kafka import Message

from archive.account import BarKey, Edition, Place, RowCount
from archive.contract.segment import Product, Segment, day_of, in_runs
from archive.storing.archive_sink import END_OF_TIME_MS, ArchiveCounts, SinkRefused
from archive.topics.record_values import BAR_TOPIC, ROW_TOPIC, WINDOW_TOPIC
from archive.topics.relay_topics import RelayTopics
from archive.topics.relayed_records import read_entry, said_in
from ingest.schemas.framing import BadValue, is_framed


class KafkaCounts(ArchiveCounts):
    """What is relayed, by the records, as JSON or Avro. Methods raise LogError."""

    keeps: tuple[Product, ...] = ("windows", "bars")

    def __init__(self, topics: RelayTopics, registry_url: str = "") -> None:
        self._topics = topics
        self._registry_url = registry_url

    def segments(self, product: Product = "windows") -> list[Segment]:
        kind = WINDOW_TOPIC if product == "windows" else BAR_TOPIC
        entries = {entry for entry, _ in self._entries(kind)}
        runs = in_runs(sorted(entries), _is_next)
        return [reduce(Segment.join, run) for run in runs]

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]:
        """Return place, end and number of rows of each window, as told in its record.

        A window that is there twice is returned twice.
        """
        windows = []
        for entry, message in self._entries(WINDOW_TOPIC, first_ms, last_ms):
            rows = int(self._value(WINDOW_TOPIC, message)["rows"])
            windows.append(((entry.epoch, entry.first), entry.last_ms, rows))
        return windows

    def rows(self, first_ms: int, last_ms: int) -> list[RowCount]:
        counts = Counter[tuple[Place, int | None]]()
        for message in self._topics.records(ROW_TOPIC, first_ms, last_ms):
            headers = message.headers()
            place = said_in(headers, "epoch"), int(said_in(headers, "offset"))
            counts[place, message.partition()] += 1
        return [(*key, count) for key, count in counts.items()]

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]:
        bars: dict[BarKey, Edition] = {}
        for message in self._topics.records(BAR_TOPIC, first_ms, last_ms):
            bar = self._value(BAR_TOPIC, message)
            isin, width_ms, start_ms = (message.key() or b"").decode().split("/")
            key = isin, int(start_ms), int(width_ms)
            edition = bar["revision"], bar["trades"]
            bars[key] = max(edition, bars.get(key, edition))
        return bars

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        return Counter(width for _, _, width in self.bars(first_ms, last_ms))

    def bar_lines(self) -> dict[date, int]:
        return Counter(day_of(entry.last_ms) for entry, _ in self._entries(BAR_TOPIC))

    def _value(self, kind: str, message: Message) -> Any:
        value = message.value() or b"{}"
        if not is_framed(value):
            return orjson.loads(value)
        topic = self._topics.topic(kind)
        if not self._registry_url:
            raise SinkRefused(
                f"{topic}: has Avro, and schema_registry_url does not say where its "
                "schemas are"
            )
        from ingest.schemas.registry import open_registry

        try:
            return open_registry(self._registry_url).read(value)
        except BadValue as error:
            raise SinkRefused(f"{topic}: {error}") from None

    def _entries(
        self, kind: str, first_ms: int = 0, last_ms: int = END_OF_TIME_MS
    ) -> Iterator[tuple[Segment, Message]]:
        """Yield records with the entry of the log that each is of."""
        for message in self._topics.records(kind, first_ms, last_ms):
            try:
                yield read_entry(message.headers()), message
            except ValueError as error:
                raise SinkRefused(f"{self._topics.topic(kind)}: {error}") from None


def _is_next(before: Segment, after: Segment) -> bool:
    is_of_day = day_of(before.last_ms) == day_of(after.first_ms)
    return is_of_day and before.is_followed_by(after)
