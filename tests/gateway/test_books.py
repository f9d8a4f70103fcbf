"""Readiness shows whether the throttle's books balance."""

import json

import pytest
import redis

from ingest.redis_keys import Keys
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_row
from tests.gateway.servers import running_gateway
from throttle.contract.cut import Cut

pytestmark = pytest.mark.redis
KEYS = Keys("tt")


def write_ledger(client: redis.Redis, read: int, superseded: int) -> None:
    """Write the books of a job that has read one partition up to its window."""
    cut = encoded_cut(0), encoded_cut(2_000)
    client.hset(KEYS.meta, "cut:job", cut[1])
    fields = {"since": cut[0], "upto": cut[1], "batches": 1, "windows": 1}
    books = {"0:read": read, "0:published": 1, "0:superseded": superseded}
    client.hset(KEYS.ledger("job"), mapping={**fields, **books})


def encoded_cut(end_ms: int) -> str:
    """Encode a cut as the throttle stores it."""
    return json.dumps(Cut(end_ms, (0,), (0,)).to_offset())


def test_a_difference_of_one_is_shown_and_its_end_too(
    client: redis.Redis, redis_url: str
) -> None:
    """Accounted: a trade that is not accounted for makes the gateway not ready."""
    publisher = Publisher(client, window_ms=2_000)
    write_ledger(client, read=3, superseded=2)
    publisher.publish()
    with running_gateway(redis_url) as gateway:
        gateway.wait_until(1)
        publisher.publish(make_row())
        eventually(lambda: gateway.health()["ready"])
        write_ledger(client, read=4, superseded=2)
        eventually(lambda: gateway.get("/health/ready")[0] == 503)
        reason = gateway.health()["reason"]
        assert reason.startswith("ledger of job: partition 0: 4 trades were read, 3 ")
        publisher.publish()
        write_ledger(client, read=4, superseded=3)
        eventually(lambda: gateway.health()["ready"])


def test_a_ledger_that_cannot_be_read_is_a_reason(
    client: redis.Redis, redis_url: str
) -> None:
    """Books nobody can read do not count as balanced."""
    publisher = Publisher(client, window_ms=2_000)
    with running_gateway(redis_url) as gateway:
        publisher.publish(make_row())
        client.hset(KEYS.meta, "cut:job", "x")
        client.hset(KEYS.ledger("job"), "since", "{}")
        eventually(lambda: "ledger of job" in gateway.health().get("reason", ""))
