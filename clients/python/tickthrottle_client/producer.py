"""Appends trades to the trade log, as our own feeds do::

    async with TradeProducer("redis://127.0.0.1:6379") as producer:
        await producer.send({"isin": "KR7005930003", "time": 1773964804123456,
                             "price": "71900", "size": 10})

What was sent waits in memory, up to a bound, until the log's server has acknowledged
it; a server that is away is waited for.
"""

import asyncio
import logging
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Protocol, Self

from tickthrottle_client.kafka_topic import OWNED, KafkaTopic
from tickthrottle_client.key_v1 import SymbolKeys, Venue
from tickthrottle_client.log_v1 import (
    BACKOFF_S,
    CAP,
    LEAST_CAP,
    MOST_PARTITIONS,
    NAMESPACE_PATTERN,
    PARTITIONS,
    TOPIC_PATTERN,
    LogAway,
    LogError,
    LogInfo,
    LogUnusable,
)
from tickthrottle_client.receipt_v1 import (
    UNSENT,
    AppendCounts,
    AppendTally,
    ReceiptFile,
)
from tickthrottle_client.trade_v1 import encode_trade

BUFFER_BYTES = 8 * 2**20
ENTRY_OVERHEAD_BYTES = 200
"""What an entry takes beside its payload, about: its objects, its key."""

BATCH_BYTES = 2**20
"""Most bytes of one append."""

_RECEIPT_TICK_S = 0.25
# Who sends in a loop without a pause lets others have their turn so often.
_TURN_SENDS = 256

_KAFKA_FORM = re.compile(rf"kafka://(?P<servers>[^/?#@\s]+)/(?P<topic>{TOPIC_PATTERN})")

_APPENDERS = {
    "kafka": ("confluent-kafka", "topic_writer", "TopicAppender"),
    "redis": ("redis", "redis_appender", "RedisAppender"),
}
"""By kind of log: the package it needs, and where its ``Appender`` is."""

log = logging.getLogger(__name__)


class NotAppended(LogError):
    """The block was left, and not everything that was sent is in the log.

    ``unsent`` trades are not in it; ``in_doubt`` may be.
    """

    def __init__(self, unsent: int, in_doubt: int, reason: str) -> None:
        super().__init__(
            f"{unsent:,} trades were not sent, {in_doubt:,} were sent and not "
            f"acknowledged: {reason}"
        )
        self.unsent = unsent
        self.in_doubt = in_doubt


class Appender(AppendCounts, Protocol):
    """What a producer needs of a log."""

    info: LogInfo
    refused: Counter[str]
    """Entries that are not in the log, by reason."""

    most_entries: int
    """Most entries of one append."""

    async def append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Append; after LogAway the very same list is to be appended again."""

    async def abandon(self) -> None:
        """Give up what is under way: it is in doubt from now on."""

    async def close(self) -> None:
        """Disconnect."""


class TradeProducer:
    """Appends trades for as long as the ``async with`` block lasts.

    ``address`` is ``redis://host:port``, ``rediss://``, ``unix://`` or
    ``redis+sentinel://host:26379,host2:26379/name``, with the pipeline's
    ``namespace``, or ``kafka://host:9092,host2:9092/topic``, with ``kafka_options`` of
    librdkafka. A log in Redis is created if there is none, with so many
    ``partitions``, and keeps to ``cap`` entries as with every feed; a server that may
    evict keys is refused unless ``may_evict``. A topic has to be there (`tickthrottle
    topic`). With a ``venue``, ``XNAS`` or with letters of its own ``XNAS=QM``, trades
    may have a ``symbol`` in place of an ISIN. ``receipt`` is a file for `tickthrottle
    reconcile`, renewed every two seconds.

    Each trade that ``send`` has taken is appended, in order, in the background. At
    most ``buffer_bytes`` wait for the log; then ``send`` waits, too. While the log's
    server is away everything waits, for as long as it takes. In Redis an append without
    an answer is sent again: its trades may be there twice, and are counted in
    ``in_doubt``. In Kafka nothing is there twice.

    Leaving the block, by an exception or a cancellation too, waits until all is
    acknowledged, ``leave_within_s`` at most; what is left then is told by NotAppended,
    or, if there is an exception already, by a note on it. A second cancellation ends
    the waiting. If the log cannot be used any more (it was emptied, access was
    withdrawn), ``send`` and ``flush`` raise LogUnusable, and so does the end of the
    block. An object is for one block.

    Entering the block raises LogAway if no server answers, LogUnusable if the log
    cannot be used, and OSError if the receipt cannot be written.
    """

    def __init__(
        self,
        address: str,
        *,
        namespace: str = "tt",
        partitions: int = PARTITIONS,
        cap: int = CAP,
        venue: str | None = None,
        may_evict: bool = False,
        kafka_options: Mapping[str, str] | None = None,
        receipt: str | Path | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        leave_within_s: float = 10.0,
    ) -> None:
        """Connect to nobody yet. Raises LogUnusable for an address or an option."""
        scheme = address.partition("://")[0]
        if scheme == "kafka":
            topic = _topic(address, kafka_options or {})
            self._open: Callable[[], Awaitable[Appender]] = partial(
                _open, "kafka", topic
            )
        elif scheme.removesuffix("+sentinel") in ("redis", "rediss", "unix"):
            if not re.fullmatch(NAMESPACE_PATTERN, namespace):
                rule = f"must be like {NAMESPACE_PATTERN}"
                raise LogUnusable(f"namespace {namespace!r}: {rule}")
            _check_least("partitions", partitions, 1)
            if partitions > MOST_PARTITIONS:
                rule = f"must be at most {MOST_PARTITIONS}"
                raise LogUnusable(f"partitions {partitions}: {rule}")
            _check_least("cap", cap, LEAST_CAP)
            options = (address, namespace, partitions, cap, may_evict)
            self._open = partial(_open, "redis", *options)
        else:
            rule = "must begin with redis://, rediss://, unix:// or kafka://"
            raise LogUnusable(f"address: {rule}")
        try:
            self._keys = None if venue is None else SymbolKeys(Venue.parse(venue))
        except ValueError as error:
            raise LogUnusable(f"venue {error}") from None
        _check_least("buffer_bytes", buffer_bytes, 1)
        self._buffer_bytes = buffer_bytes
        self._leave_within_s = leave_within_s
        self._receipt_path = None if receipt is None else Path(receipt)
        self._receipt: ReceiptFile | None = None
        self._appender: Appender | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._buffer: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0
        # Entries that were sent, and those among them of which the end is known.
        self._taken = self._settled = 0
        # Of the append under way: its entries, and what was in doubt before.
        self._under_way = self._doubt_before = 0
        self._away: str | None = None
        self._failure: Exception | None = None
        self._is_open = False
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._sends = 0
        # As in a pipe: who starts again goes on above the numbers of the last time.
        self._next_seq = count(time.time_ns() // 1_000).__next__

    async def __aenter__(self) -> Self:
        if self._appender is not None:
            raise RuntimeError("a TradeProducer is for one block")
        appender = await self._open()
        if self._receipt_path is not None:
            try:
                self._receipt = ReceiptFile(
                    *(self._receipt_path, appender.info, appender, _now_ms()),
                    on_failure=lambda e: log.warning("no receipt is written: %s", e),
                )
            except OSError:
                await appender.close()
                raise
        self._appender = appender
        self._is_open = True
        self._tasks = [
            asyncio.create_task(self._work(appender), name="trades to the log"),
            asyncio.create_task(self._keep_receipt(), name="receipt of trades"),
        ]
        return self

    async def __aexit__(
        self, _: object, error: BaseException | None, *__: object
    ) -> None:
        """Wait for what was sent, then disconnect. Raises NotAppended, LogUnusable."""
        self._is_open = False
        # Whoever waits in ``send`` is told.
        self._notify()
        reason = "the producer has ended"
        try:
            async with asyncio.timeout(self._leave_within_s):
                await self._until(lambda: self._is_settled(self._taken))
        except TimeoutError:
            reason = f"not within {self._leave_within_s:g} s"
            reason += f" ({self._away})" if self._away else ""
        finally:
            ending = asyncio.create_task(self._end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending
                raise
        left = self._left(reason)
        told = error or self._failure
        if told is not None and left is not None:
            told.add_note(str(left))
        if error is None and self._failure is not None:
            raise self._failure
        if error is None and left is not None:
            raise left

    async def send(self, trade: Mapping[str, Any]) -> None:
        """Take a trade to append; wait while too many bytes wait for the log.

        It has ``isin``, or ``symbol`` if the producer has a venue; ``time``,
        microseconds since 1970 UTC, or text as in ISO 8601 or a datetime, each with its
        offset; ``price`` and ``size``, text, ``int`` or Decimal, so that no digit is
        lost; ``seq``, its number within the instrument, or none: then it gets one,
        greater than that of the trade before. Further fields go along. Raises
        InvalidTrade for a trade that breaks a rule, and LogUnusable. A ``send`` that
        raises, or is cancelled, has taken nothing.
        """
        self._check()
        self._sends += 1
        if self._sends % _TURN_SENDS == 0:
            await asyncio.sleep(0)
        if self._keys is not None and isinstance(trade, Mapping):
            trade = self._keys.keyed(trade)
        entry = encode_trade(trade, self._next_seq)
        size = len(entry[1]) + ENTRY_OVERHEAD_BYTES
        if self._turn.locked() or not self._has_room(size):
            # Those who wait are served in the order in which they came.
            async with self._turn:
                await self._until(lambda: not self._is_open or self._has_room(size))
                self._put(entry, size)
        else:
            self._put(entry, size)

    async def flush(self) -> None:
        """Wait until the end is known of all that was sent. Raises LogUnusable."""
        self._check()
        upto = self._taken
        await self._until(lambda: self._is_settled(upto))
        if self._failure is not None:
            raise self._failure

    @property
    def log(self) -> LogInfo:
        return self._opened.info

    @property
    def acknowledged(self) -> int:
        """Trades that the log's server has confirmed."""
        return sum(tally.acknowledged for tally in self.tallies)

    @property
    def in_doubt(self) -> int:
        """How many entries, at most, are in the log beyond the acknowledged ones."""
        return sum(tally.in_doubt for tally in self.tallies)

    @property
    def refused(self) -> Mapping[str, int]:
        """Trades that are not in the log, by reason.

        ``too_large_for_log``: over the limit of the topic. ``unsent``: left over when
        the block was left.
        """
        return dict(self._opened.refused)

    @property
    def tallies(self) -> Sequence[AppendTally]:
        """What became of all others, by partition."""
        return self._opened.tallies

    @property
    def dropped_at_cap(self) -> int:
        """Entries it dropped from the log's beginning to keep it within its cap."""
        return self._opened.dropped_at_cap

    @property
    def waiting_bytes(self) -> int:
        """What waits for the log, in bytes: at most ``buffer_bytes``."""
        return self._waiting_bytes

    @property
    def away(self) -> str | None:
        """Why everything waits, in words; None while the log takes trades."""
        return self._away

    @property
    def _opened(self) -> Appender:
        if self._appender is None:
            raise RuntimeError("the producer's block has not been entered")
        return self._appender

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._is_open:
            raise RuntimeError("trades are sent within the producer's block")

    def _has_room(self, size: int) -> bool:
        # What is larger than the bound alone goes through alone.
        return not self._waiting_bytes or (
            self._waiting_bytes + size <= self._buffer_bytes
        )

    def _put(self, entry: tuple[str, bytes], size: int) -> None:
        self._check()
        self._buffer.append(entry)
        self._waiting_bytes += size
        self._taken += 1
        if len(self._buffer) == 1:
            self._notify()

    def _is_settled(self, upto: int) -> bool:
        return self._settled >= upto or self._failure is not None

    def _notify(self) -> None:
        """Wake up whoever waits; each looks for itself."""
        self._changed.set()
        self._changed.clear()

    async def _until(self, check: Callable[[], bool]) -> None:
        while not check() and self._failure is None:
            await self._changed.wait()

    async def _work(self, appender: Appender) -> None:
        try:
            while True:
                await self._until(lambda: bool(self._buffer))
                entries, size = self._next_batch(appender.most_entries)
                self._under_way = len(entries)
                self._doubt_before = self.in_doubt
                await self._insist(appender, entries)
                self._settled += len(entries)
                self._waiting_bytes -= size
                self._under_way = 0
                self._notify()
        except Exception as error:  # noqa: BLE001 - it is raised by send and flush
            self._failure = error
            self._notify()

    def _next_batch(self, most: int) -> tuple[list[tuple[str, bytes]], int]:
        entries: list[tuple[str, bytes]] = []
        size = 0
        while self._buffer and len(entries) < most and size < BATCH_BYTES:
            entry = self._buffer.popleft()
            size += len(entry[1]) + ENTRY_OVERHEAD_BYTES
            entries.append(entry)
        return entries, size

    async def _insist(
        self, appender: Appender, entries: list[tuple[str, bytes]]
    ) -> None:
        for attempt in count():
            try:
                await appender.append(entries)
            except LogAway as error:
                if attempt == 0:
                    log.warning("the log is silent, waiting: %s", error)
                self._away = str(error)
                await asyncio.sleep(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])
            else:
                if attempt:
                    log.info("the log takes trades again")
                self._away = None
                return

    async def _keep_receipt(self) -> None:
        while self._receipt is not None:
            await asyncio.sleep(_RECEIPT_TICK_S)
            self._receipt.renew(_now_ms())

    async def _end(self) -> None:
        """Give up what is left, say so, disconnect."""
        appender = self._opened
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await appender.abandon()
        if (left := self._left("")) is not None and left.unsent:
            appender.refused[UNSENT] = left.unsent
        if self._receipt is not None:
            self._receipt.finish(_now_ms())
        await appender.close()

    def _left(self, reason: str) -> NotAppended | None:
        """Return what is not in the log, or not for sure; None if all is."""
        refused = self._opened.refused
        others = sum(refused.values()) - refused.get(UNSENT, 0)
        left = self._taken - self.acknowledged - others
        if left <= 0:
            return None
        in_doubt = min(self._under_way, left, self.in_doubt - self._doubt_before)
        return NotAppended(left - in_doubt, in_doubt, reason)


def _topic(address: str, options: Mapping[str, str]) -> KafkaTopic:
    form = _KAFKA_FORM.fullmatch(address)
    if form is None:
        rule = "must be like kafka://host:9092,host2:9092/topic"
        raise LogUnusable(f"address: {rule}")
    for name in options:
        if name in OWNED:
            raise LogUnusable(f"kafka_options: {name} may not be set: {OWNED[name]}")
    return KafkaTopic(form["servers"], form["topic"], tuple(options.items()))


async def _open(kind: str, *options: Any) -> Appender:
    package, home, name = _APPENDERS[kind]
    try:
        module = import_module(f"tickthrottle_client.{home}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.replace("-", "_"):
            raise
        raise LogUnusable(
            f"an address {kind}:// needs the package {package}, which is not "
            f"installed: pip install 'tickthrottle-client[{kind}]'"
        ) from None
    appender: Appender = await getattr(module, name).open(*options)
    return appender


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise LogUnusable(f"{name} {value}: must be at least {least}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
