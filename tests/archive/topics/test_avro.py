"""Avro out of a relay and into a decoder, with a real broker and a real registry."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
import redis
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from typer.testing import CliRunner

from archive.account import rows_of_log, stored_day
from archive.archive_process import ArchiveFailed, open_counts
from archive.settings import ArchiveSettings
from archive.storing.archive_sink import SinkRefused
from cli.command_line import app
from ingest.trade import InvalidTrade, Trade
from tests.archive.bar_rig import (
    close_minutes,
    logged_bars,
    newest_number,
    wait_until_bars_stored,
)
from tests.archive.rig import archiving, publish, state_of, wait_until_stored
from tests.archive.topics.reading import Read, committed
from tests.conftest import eventually
from tests.doc_pages import blocks
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.kafka_broker.broker import Broker
from tests.published import read_snapshots
from tests.schema_registry.schema_registry import SchemaRegistryServer
from tests.throttle.analytics.bars.bar_writer import BarWriter
from throttle.window.decoder import decode, find_decoder

pytestmark = [pytest.mark.redis, pytest.mark.kafka, pytest.mark.timeout(180)]

NAME, PREFIX = "kafka", "avro-out"
EVERY = 0, 2**53
TRADE = """
{"type": "record", "name": "Execution", "fields": [
  {"name": "sym", "type": "string"},
  {"name": "px", "type":
    {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 6}},
  {"name": "qty", "type": "long"},
  {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "id", "type": "long"}]}
"""


def values_of(broker: Broker, registry: SchemaRegistryServer, kind: str) -> list[Read]:
    """Return what a consumer finds that knows the registry, and nothing of ours."""
    topic = f"{PREFIX}.{kind}"
    where = SerializationContext(topic, MessageField.VALUE)
    with registry.client() as client:
        read = AvroDeserializer(client)
        return committed(broker, topic, lambda value: read(value, where))


@pytest.fixture
def plain(kafka: Broker, redis_url: str) -> ArchiveSettings:
    return ArchiveSettings(
        archive_topics=PREFIX, kafka_servers=kafka.servers, redis_url=redis_url
    )


@pytest.fixture
def avro(
    plain: ArchiveSettings, schema_registry: SchemaRegistryServer
) -> ArchiveSettings:
    form = {"archive_format": "avro", "schema_registry_url": schema_registry.url}
    return plain.model_copy(update=form)


def test_rows_and_bars_are_relayed_as_avro(
    client: redis.Redis,
    publisher: Publisher,
    kafka: Broker,
    schema_registry: SchemaRegistryServer,
    plain: ArchiveSettings,
    avro: ArchiveSettings,
) -> None:
    """Behind those that were JSON. A registry that is away is waited for, and named;
    what is relayed needs it no more. All of both forms is counted.
    """
    publisher.list_instruments()
    publish(publisher, 2)
    close_minutes(BarWriter(client), 0, 2)
    with archiving(plain):
        wait_until_stored(client, 2, NAME)
        wait_until_bars_stored(client, newest_number(client), NAME)
    schema_registry.kill()
    publish(publisher, 2)
    close_minutes(BarWriter(client), 2, 2)
    with archiving(avro) as ends:
        problem = eventually(lambda: state_of(client, NAME).problem, 60)
        assert "no schema registry answers at http://127" in problem
        schema_registry.start()
        wait_until_stored(client, 4, NAME)
        wait_until_bars_stored(client, newest_number(client), NAME)
        eventually(lambda: state_of(client, NAME).problem is None, 60)
        schema_registry.kill()
        publisher.publish(make_row(SAMSUNG, "0.30", 9, 7))
        wait_until_stored(client, 5, NAME)
        assert ends == []
    schema_registry.start()

    snapshots = read_snapshots(client)
    windows = values_of(kafka, schema_registry, "windows")
    assert [w.value["rows"] for w in windows] == [len(s.rows) for s in snapshots]
    rows = values_of(kafka, schema_registry, "rows")
    wanted = Counter((s.epoch, s.offset, r.isin) for s in snapshots for r in s.rows)
    found = Counter((r.value["epoch"], r.value["offset"], r.key) for r in rows)
    assert found == wanted
    [row] = [r.value for r in rows if r.value["offset"] == 5]
    assert (row["price"], row["trades"], row["listed"]) == ("0.30", 7, False)
    assert row["time"].timestamp() * 1_000_000 == 1_773_964_802_000_009
    assert row["volume"] is None or Decimal(row["volume"]) > 0
    latest = {r.key: r.value for r in values_of(kafka, schema_registry, "latest")}
    assert latest[SAMSUNG] == row

    counts = open_counts(avro)
    log = rows_of_log(snapshots)
    kept = stored_day(counts.windows(*EVERY), counts.rows(*EVERY))
    assert kept == {place: (window, window.rows) for place, window in log.items()}
    wanted_bars = {key: bar.edition for key, bar in logged_bars(client).items()}
    assert counts.bars(*EVERY) == wanted_bars
    told = ("--topics", PREFIX, "--kafka-servers", kafka.servers)
    told += ("--schema-registry", schema_registry.url)
    done = CliRunner().invoke(app, ["archive", "--show", "--json", *told])
    shown = json.loads(done.stdout)
    assert [day["windows"] for day in shown["days"]] == [5]
    with pytest.raises(SinkRefused, match="schema_registry_url does not say"):
        open_counts(plain).bars(*EVERY)


def test_a_schema_that_does_not_fit_is_refused(
    publisher: Publisher, schema_registry: SchemaRegistryServer, avro: ArchiveSettings
) -> None:
    """In a sentence, once: somebody else's subject is his."""
    schema_registry.start()
    with schema_registry.client() as registry:
        registry.register_schema("misfit.rows-value", Schema('"string"', "AVRO"))
        config = ServerConfig(ConfigCompatibilityLevel.BACKWARD)
        registry.set_config("misfit.rows-value", config)
    publish(publisher, 1)
    with archiving(avro.model_copy(update={"archive_topics": "misfit"})) as ends:
        eventually(lambda: ends)
    assert isinstance(ends[0], ArchiveFailed)
    assert "subject misfit.rows-value: " in str(ends[0])


def test_trades_in_avro_are_decoded(
    schema_registry: SchemaRegistryServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Confluent's serializer writes them, by the decoder of the page."""
    schema_registry.start()
    monkeypatch.syspath_prepend(str(tmp_path))
    [program] = [b for b in blocks("docs/kafka.md", "python") if "avro_" in b]
    (tmp_path / "avro_executions.py").write_text(program)
    where = SerializationContext("executions", MessageField.VALUE)
    fields = {"sym": "AAPL", "px": Decimal("199500.50"), "qty": 3, "id": 7}
    with schema_registry.client() as client:
        write = AvroSerializer(client, TRADE)
        value = write({**fields, "ts": 1_773_964_804_123}, where)
    assert value is not None
    decoder = find_decoder("avro+avro_executions:decode", schema_registry.url)
    [trade] = decode(value, decoder)
    assert trade == Trade("US0378331005", 1_773_964_804_123_000, 7, "199500.5", "3")
    [unknown] = decode(b"\0\0\xff\xff\xff\2", decoder)
    assert isinstance(unknown, InvalidTrade)
    assert unknown.reason == "not_decoded"
    assert "the registry has none" in str(unknown)
