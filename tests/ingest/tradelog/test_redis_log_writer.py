"""Appending many entries at once, on a real server."""

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs

from ingest.tradelog.contract import AppendTally, Head, LogInfo, partition_of
from ingest.tradelog.redis_log_writer import RedisLogWriter, append_all, append_head
from tests.ingest.tradelog.redis_streams import ISIN, NAMESPACE, everything, make_log
from tests.ports import free_port
from tickthrottle_client.log_v1 import position_of, stream_key

HEADS = [append_head(key, b"trade") for key in ("one", "zwei: ü")]


@pytest.mark.redis
def test_every_entry_comes_in_order(client: redis.Redis) -> None:
    """Whatever the bytes, and however many: the ids say where each one is."""
    payloads = [b"", b"\r\n$5", bytes(range(256)), b"x" * 100_000, *[b"y"] * 999]
    heads = [HEADS[number % 2] for number in range(len(payloads))]
    ids = append_all(client, heads, payloads)
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
        append_all(client, heads, [b"a", b"b", b"c"])
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
            append_all(impatient, HEADS[:1], [b"a"])
        assert impatient.echo("new") == b"new"
        client.execute_command("CLIENT", "UNPAUSE")
        assert append_all(impatient, HEADS[1:], [b"b"])


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
    """An append that was not acknowledged whole raises; all of it is in doubt."""
    writer, _ = make_log(client)
    client.set(stream_key(NAMESPACE, 0), "no stream")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        writer.append([(ISIN, b"x"), (ISIN, b"y")])
    assert writer.tallies == [AppendTally(in_doubt=2)]


def test_server_that_is_gone_fails_the_append() -> None:
    """Without a server an append raises and says it could not connect."""
    dead = redis.Redis(port=free_port(), retry=Retry(NoBackoff(), 0))
    writer = RedisLogWriter(dead, NAMESPACE, LogInfo("id", 1, 0), 1_000)
    with pytest.raises(redis.ConnectionError):
        writer.append([(ISIN, b"x")])
