"""REST: the version; health over HTTP."""

import json
from importlib.metadata import version

import pytest
import redis

from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port

pytestmark = pytest.mark.redis


def test_the_version_is_told(listed: Gateway) -> None:
    """To everybody, with the protocol of the stream."""
    status, body = listed.get("/v1/version")
    assert (status, json.loads(body)) == (
        200,
        {
            "name": "tickthrottle",
            "version": version("tickthrottle"),
            "protocol": "tick.v1",
            "pages": ["/"],
        },
    )


def test_the_gateway_is_ready_while_windows_arrive(
    client: redis.Redis, redis_url: str
) -> None:
    """Not before the first one, and no longer than three windows after the last."""
    publisher = Publisher(client, window_ms=300)
    publisher.publish()
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        assert gateway.get("/health/live") == (200, b'{"live":true}')
        assert gateway.get("/health/ready")[0] == 503
        assert gateway.health()["reason"] == "no window yet"
        publisher.publish(make_row())
        health = eventually(lambda: (h := gateway.health())["ready"] and h)
        assert (health["epoch"], health["offset"]) == (EPOCH, 2)
        assert (health["instruments"], health["clients"]) == (1, 0)
        eventually(lambda: gateway.get("/health/ready")[0] == 503)
        assert gateway.health()["reason"].startswith("no window for ")


def test_a_gateway_without_redis_says_so() -> None:
    """It serves what it has, and is not ready."""
    with running_gateway(f"redis://127.0.0.1:{free_port()}/0") as gateway:
        assert gateway.get("/health/ready")[0] == 503
        assert gateway.get("/v1/quotes")[0] == 200
