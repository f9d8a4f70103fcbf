"""Fixtures of the gateway's tests: a gateway that follows, and a publisher."""

from collections.abc import Iterator

import pytest
import redis

from tests.gateway import servers
from tests.gateway.publisher import Publisher
from tests.gateway.servers import Gateway, running_gateway


@pytest.fixture
def publisher(client: redis.Redis) -> Publisher:
    """A publisher that has not published anything."""
    return Publisher(client)


@pytest.fixture
def gateway(publisher: Publisher, redis_url: str) -> Iterator[Gateway]:
    """A gateway that follows; one empty window, offset 1, is published already."""
    publisher.publish()
    with running_gateway(redis_url) as running:
        running.wait_for("reloads")
        yield running


@pytest.fixture(params=["direct", "asgi"])
def writing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test twice: frames written to the transport, and through ASGI."""
    monkeypatch.setattr(servers, "WRITES_DIRECTLY", request.param == "direct")
    return str(request.param)
