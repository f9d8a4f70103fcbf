"""Appending many entries at once, on a real server."""

import pytest
import redis

from ingest.redis_append import append_all, append_head

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
def test_nothing_is_appended_as_nothing(client: redis.Redis) -> None:
    """No entries, no ids."""
    assert append_all(client, [], []) == []


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
