"""The instrument table in a topic, with real brokers."""

import threading
from collections.abc import Iterator
from secrets import token_hex

import pytest
import redis
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from gateway.settings import GatewaySettings
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import InstrumentList
from ingest.instrument_table.instrument_store import (
    PAGE,
    TableAway,
    TableLost,
    TableMoved,
)
from ingest.instrument_table.kafka_instrument_store import KafkaInstrumentStore
from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.instrument_table.table_loader import (
    changes_of,
    load_list,
    read_on,
    update_table,
)
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogUnusable
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins, make_row
from tests.gateway.servers import running_gateway
from tests.kafka_broker.broker import Broker
from tests.ports import free_port

pytestmark = pytest.mark.kafka

CHIPS = InstrumentEntry(SAMSUNG, "005930", sector="chips", prev_close="1.10")


@pytest.fixture
def topic(kafka: Broker) -> KafkaTopic:
    """A topic that is not there yet."""
    return KafkaTopic(kafka.servers, f"instruments-{token_hex(4)}")


@pytest.fixture
def store(topic: KafkaTopic) -> Iterator[KafkaInstrumentStore]:
    """The store of that topic."""
    store = KafkaInstrumentStore(topic)
    yield store
    store.close()


def known(
    store: KafkaInstrumentStore, before: Instruments | None = None
) -> Instruments:
    """Read the table on from what was known before."""
    return read_on(store, before or Instruments())[0]


def listed(*isins: str, name: str | None = None) -> InstrumentList:
    """Return a list of instruments with one name."""
    return InstrumentList([InstrumentEntry(isin, name=name) for isin in isins])


def test_a_table_is_made_changed_and_followed(store: KafkaInstrumentStore) -> None:
    """The topic is made by the first load; whoever follows reads on."""
    assert len(known(store)) == 0
    loaded = update_table(store, InstrumentList([CHIPS, InstrumentEntry(HYNIX)]))
    assert (loaded.added, loaded.version) == (2, 2)
    table = known(store)
    assert [instrument.isin for instrument in table] == [HYNIX, SAMSUNG]
    assert table.get(SAMSUNG) == CHIPS
    assert known(store, table) is table
    assert update_table(store, InstrumentList([CHIPS])).unchanged == 2
    load_list(store, listed(SAMSUNG, NAVER), is_forced=True)
    later = known(store, table)
    assert [instrument.isin for instrument in later] == [SAMSUNG, NAVER]
    assert later.version > table.version
    changes = changes_of(store, HYNIX)
    assert [change.entry for change in changes] == [InstrumentEntry(HYNIX), None]
    assert changes[0].changed_ms > 1_600_000_000_000
    other = KafkaInstrumentStore(store._topic)
    assert list(known(other)) == list(later)
    other.close()


def test_changes_are_read_in_pages(store: KafkaInstrumentStore) -> None:
    """A page ends where it says."""
    isins = make_isins(2 * PAGE + 10)
    load_list(store, listed(*isins), is_forced=True)
    version, found = 0, []
    while True:
        page = store.read(version)
        assert len(page.changes) <= PAGE
        found += [change.isin for change in page.changes]
        version = page.version
        if page.is_last:
            break
    assert found == isins
    assert store.read(version).changes == []


def test_loaders_at_once_do_not_undo_each_other(topic: KafkaTopic) -> None:
    """One is ended by the other, compares again, and writes what is still missing."""
    isins = make_isins(12)
    first = KafkaInstrumentStore(topic)
    update_table(first, listed(NAVER))
    first.close()

    def add(mine: list[str]) -> None:
        own = KafkaInstrumentStore(topic)
        for isin in mine:
            update_table(own, listed(isin))
        own.close()

    threads = [threading.Thread(target=add, args=(isins[n::2],)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = KafkaInstrumentStore(topic)
    assert {instrument.isin for instrument in known(store)} == {NAVER, *isins}
    store.close()


def test_whoever_comes_second_compares_again(store: KafkaInstrumentStore) -> None:
    """Nothing is written over a change that was not known."""
    update_table(store, InstrumentList([CHIPS]))
    with pytest.raises(TableMoved):
        store.append([(SAMSUNG, None)], 0)
    assert known(store).get(SAMSUNG) == CHIPS


def test_what_others_wrote_is_left_out_and_counted(
    store: KafkaInstrumentStore, topic: KafkaTopic
) -> None:
    """Their own producers, without a transaction; what is a change is taken."""
    update_table(store, InstrumentList([CHIPS]))
    producer = Producer({"bootstrap.servers": topic.servers})
    for key, value in [
        (b"KR7005930004", b"{}"),
        (HYNIX.encode(), b"{"),
        (HYNIX.encode(), b'{"isin":"%b"}' % HYNIX.encode()),
    ]:
        producer.produce(topic.topic, key=key, value=value)
    producer.flush(10)
    table, refused = read_on(store, Instruments())
    assert ([instrument.isin for instrument in table], refused) == ([HYNIX, SAMSUNG], 2)


def test_a_topic_that_was_made_anew_is_read_anew(
    store: KafkaInstrumentStore, topic: KafkaTopic
) -> None:
    """Deleted, and made again under its name with other changes."""
    load_list(store, listed(SAMSUNG, HYNIX), is_forced=True)
    before = known(store)
    admin = AdminClient({"bootstrap.servers": topic.servers})
    admin.delete_topics([topic.topic])[topic.topic].result(10)
    eventually(lambda: len(known(store, before)) == 0)
    with pytest.raises(TableLost):
        store.read(before.version)
    other = KafkaInstrumentStore(topic)
    eventually(lambda: load_list(other, listed(NAVER), is_forced=True).added == 1)
    other.close()
    eventually(lambda: [i.isin for i in known(store)] == [NAVER])


def test_what_cannot_be_used_is_told(topic: KafkaTopic, kafka: Broker) -> None:
    """Nobody there, or a topic with several partitions."""
    nowhere = KafkaInstrumentStore(
        KafkaTopic(f"127.0.0.1:{free_port()}", "instruments")
    )
    with pytest.raises(TableAway, match="no Kafka broker answers"):
        nowhere.read(0)
    nowhere.close()
    admin = AdminClient({"bootstrap.servers": topic.servers})
    admin.create_topics([NewTopic(topic.topic, 3)])[topic.topic].result(10)
    store = KafkaInstrumentStore(topic)

    def told() -> str:
        try:
            store.read(0)
        except LogUnusable as error:
            return str(error)
        return ""

    assert "has 3 partitions" in eventually(told)
    store.close()


@pytest.mark.redis
def test_a_gateway_follows_a_table_in_a_topic(
    client: redis.Redis, redis_url: str, topic: KafkaTopic
) -> None:
    """As it does one in Redis."""
    chosen = {"kafka_servers": topic.servers, "kafka_instruments_topic": topic.topic}
    settings = GatewaySettings.model_validate({"redis_url": redis_url, **chosen})
    store = open_instrument_store(settings)
    # Windows so long that none is missed, however slow the brokers are.
    Publisher(client, window_ms=60_000).publish(make_row(SAMSUNG))
    with running_gateway(redis_url, **chosen) as gateway:
        gateway.wait_until(1)
        update_table(store, InstrumentList([CHIPS]))
        eventually(lambda: b"005930" in gateway.get("/v1/instruments")[1])
        with gateway.stream() as stream:
            items = stream.subscribe("sector:chips")
            assert [item["isin"] for item in items] == [SAMSUNG]
            update_table(store, InstrumentList([InstrumentEntry(SAMSUNG, sector="x")]))
            told = stream.take("members")
            assert told["renamed"] == {"sector:chips": "sector:x"}
    store.close()
