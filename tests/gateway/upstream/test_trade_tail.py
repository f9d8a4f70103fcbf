"""Every entry of a topic, once, while somebody follows it."""

import asyncio
from contextlib import suppress

import pytest
import redis
from confluent_kafka import Producer
from redis.asyncio import Redis

from gateway.stream.counters import Counters
from gateway.stream.trade_delivery import TradeDelivery, TradeDesk
from gateway.upstream import trade_tail
from gateway.upstream.trade_follower import TradeFollower
from gateway.upstream.trade_tail import (
    MOST_ENTRIES,
    KafkaTradeTail,
    LogUnread,
    RedisTradeTail,
    TailPiece,
)
from ingest.kafka.address import KafkaTopic
from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import open_log
from tests.clients.patience import soon
from tests.gateway.samples import FIRST_WINDOW, SAMSUNG
from tests.kafka import make_topic, produce
from tests.kafka_broker.broker import Broker
from tickthrottle_client.log_v1 import FIELD

ISINS = frozenset({"KR7005930003"})


async def test_brokers_that_are_away_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for them for long."""
    monkeypatch.setattr(trade_tail, "TOPIC_ANSWER_S", 0.05)
    tail = KafkaTradeTail(KafkaTopic("127.0.0.1:1", "trades"))
    for _ in range(2):
        with pytest.raises(LogUnread, match=r"no broker answers within 0\.05 s"):
            await tail.read(ISINS)


@pytest.mark.kafka
async def test_every_entry_is_read_once(kafka: Broker) -> None:
    """From now on; more than one look may read is left for the next ones."""
    topic = make_topic(kafka, 2)
    produce(kafka, topic, [b"before"])
    tail = KafkaTradeTail(KafkaTopic(kafka.servers, topic))
    assert (await read(tail)).entries == []
    wanted = [b"%d" % n for n in range(2 * MOST_ENTRIES + 5)]
    produce(kafka, topic, wanted)
    found: list[bytes] = []
    are_full = []
    while len(found) < len(wanted):
        piece = await read(tail)
        found += [payload for _, payload in piece.entries]
        are_full.append(piece.is_full)
    assert sorted(found) == sorted(wanted)
    assert are_full[0]
    assert not are_full[-1]
    assert (await read(tail)).entries == []
    produce(kafka, topic, [b"unseen"])
    # Who comes later sees what comes later.
    tail.begin()
    assert (await read(tail)).entries == []


@pytest.mark.kafka
async def test_who_follows_trades_outlives_what_was_aborted(kafka: Broker) -> None:
    """A look may find thousands of offsets, and nothing in them that counts."""
    topic = make_topic(kafka, 1)
    desk = TradeDesk(Counters())
    delivery = TradeDelivery(desk, lambda: None)
    delivery.add([SAMSUNG])
    tail = KafkaTradeTail(KafkaTopic(kafka.servers, topic))
    follower = TradeFollower(tail, desk, lambda: 2_000, Turns().served)
    task = asyncio.create_task(follower.run())

    def has_come(price: str) -> bool:
        if task.done():
            task.result()
        produce(
            kafka,
            topic,
            [Trade(SAMSUNG, FIRST_WINDOW * 1_000, 1, price, "1").to_wire()],
        )
        return f'"price":{price},'.encode() in (delivery.next_frame() or b"")

    await soon(lambda: has_come("1"))
    await asyncio.to_thread(abort, kafka, topic, 3 * MOST_ENTRIES)
    await soon(lambda: has_come("2"))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Turns:
    """Windows that go out: trades have their turn while ``free`` is set."""

    def __init__(self) -> None:
        self.free, self.asked = asyncio.Event(), asyncio.Event()
        self.free.set()

    async def served(self, within_s: float) -> None:
        """Wait until nobody is served."""
        assert within_s > 0
        self.asked.set()
        await self.free.wait()


@pytest.mark.redis
async def test_trades_wait_while_a_window_goes_out(
    client: redis.Redis, redis_url: str
) -> None:
    """They come when it has gone out, none is lost."""
    open_log(client, "tt", 1)
    counters, turns = Counters(), Turns()
    desk = TradeDesk(counters)
    delivery = TradeDelivery(desk, lambda: None)
    delivery.add([SAMSUNG])
    async with Redis.from_url(redis_url) as connection:
        tail = RedisTradeTail(connection, "tt")
        follower = TradeFollower(tail, desk, lambda: 2_000, turns.served)
        task = asyncio.create_task(follower.run())

        def append(price: str) -> None:
            trade = Trade(SAMSUNG, FIRST_WINDOW * 1_000, 1, price, "1")
            client.xadd("tt:log:0", {FIELD: trade.to_wire()})

        def has_come(price: str) -> bool:
            append(price)
            return f'"price":{price},'.encode() in (delivery.next_frame() or b"")

        await soon(lambda: has_come("1"))
        turns.free.clear()
        turns.asked.clear()
        await turns.asked.wait()
        while delivery.next_frame():
            pass
        append("2")
        append("3")
        assert delivery.next_frame() is None
        turns.free.set()
        came = bytearray()

        def has_come_both() -> bool:
            came.extend(delivery.next_frame() or b"")
            return b'"price":2,' in came and b'"price":3,' in came

        await soon(has_come_both)
        assert counters.trades_missed == 0
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def abort(kafka: Broker, topic: str, count: int) -> None:
    """Produce so many values, and take them back."""
    settings = {"bootstrap.servers": kafka.servers, "transactional.id": topic}
    producer = Producer(settings)
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"aborted")
    producer.flush(20)
    producer.abort_transaction(20)


async def read(tail: KafkaTradeTail) -> TailPiece:
    """Return what a look brings, however long the first connection takes."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await tail.read(ISINS)
            except LogUnread:
                pass
