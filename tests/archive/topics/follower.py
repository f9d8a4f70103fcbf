"""A consumer that is there all the time, with nothing of the product's."""

import json
import threading
from decimal import Decimal
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from tests.kafka import options
from tests.kafka_broker.broker import Broker

Place = tuple[str, int]
"""An epoch and an offset."""


class Line(NamedTuple):
    """A row as it came: its window, its instrument and its price."""

    place: Place
    isin: str
    price: Decimal


class Follower:
    """Reads what is committed of windows and rows, each record once.

    It keeps its place by itself while a broker is away. ``windows`` and the rows of
    ``partitions`` are as they came; ``error`` is what ended it.
    """

    def __init__(self, broker: Broker, prefix: str) -> None:
        self.windows: list[Place] = []
        self.partitions: list[list[Line]] = []
        self.error: BaseException | None = None
        self._prefix = prefix
        self._consumer = Consumer(
            options(
                broker,
                **{"group.id": "follower", "isolation.level": "read_committed"},
            )
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        names = (f"{self._prefix}.windows", f"{self._prefix}.rows")
        topics = self._consumer.list_topics(timeout=30).topics
        self.partitions = [[] for _ in topics[names[1]].partitions]
        self._consumer.assign(
            [TopicPartition(n, p, 0) for n in names for p in topics[n].partitions]
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def counts(self) -> tuple[int, int]:
        return len(self.windows), sum(map(len, self.partitions))

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._take()
        except Exception as error:  # noqa: BLE001 - whoever counts looks at it
            self.error = error

    def _take(self) -> None:
        message = self._consumer.poll(0.2)
        # An error is of a broker that is away: the client goes on by itself.
        if message is None or message.error() is not None:
            return
        value = json.loads(message.value() or b"", parse_float=Decimal)
        place = value["epoch"], value["offset"]
        if message.topic() == f"{self._prefix}.windows":
            self.windows.append(place)
        else:
            line = Line(place, value["isin"], Decimal(value["price"]))
            self.partitions[message.partition() or 0].append(line)
