"""How many requests one address may make."""

import json

import pytest

from tests.conftest import eventually
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import running_gateway

pytestmark = pytest.mark.redis


def test_an_address_that_asks_too_often_is_told_when_to_come_again(
    redis_url: str,
) -> None:
    """Health, operators and open streams are not touched."""
    with (
        running_gateway(redis_url, requests_per_second=0.3) as gateway,
        gateway.stream() as stream,
    ):
        for path in ("/v1/quotes", "/", "/v1/nothing"):
            assert gateway.get(path)[0] != 429
        # One more each three seconds: on a slow machine it is not the fourth.
        _, body, headers = eventually(
            lambda: (answer := gateway.fetch("/v1/quotes"))[0] == 429 and answer
        )
        assert json.loads(body)["code"] == "rate_limited"
        assert 1 <= int(headers["retry-after"]) <= 20
        assert headers["x-content-type-options"] == "nosniff"
        assert gateway.get("/health/live")[0] == 200
        assert gateway.operators.get("/v1/quotes")[0] == 200
        assert stream.subscribe(SAMSUNG) == []
        assert gateway.count("requests_rate_limited") == 1
