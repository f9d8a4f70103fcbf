"""A job says that it is about to publish, on a real server."""

import pytest
import redis

from tests.conftest import eventually
from tests.throttle.publishing import KEYS
from throttle.contract.candidate import decode_candidates
from throttle.lease.lease import Candidacy

pytestmark = pytest.mark.redis


def candidates(client: redis.Redis) -> dict[str, str]:
    """Return who is there now."""
    seconds, micros = client.time()
    return decode_candidates(
        client.hgetall(KEYS.meta), seconds * 1_000 + micros // 1_000
    )


def test_it_is_said_again_and_again_until_it_is_taken_back(
    client: redis.Redis,
) -> None:
    """Longer than one word of it is good for; closing twice does no harm."""
    with Candidacy(client, KEYS, "job", "me", ttl_ms=2_000) as candidacy:
        eventually(lambda: candidates(client) == {"job": "me"})
        first = client.hget(KEYS.meta, "candidate:job")
        eventually(lambda: client.hget(KEYS.meta, "candidate:job") != first)
        candidacy.close()
        assert candidates(client) == {}
    assert client.hgetall(KEYS.meta) == {}


def test_one_that_was_killed_is_soon_forgotten(client: redis.Redis) -> None:
    """Its field stays, and says that it is too old."""
    with Candidacy(client, KEYS, "job", "me", ttl_ms=300):
        eventually(lambda: candidates(client))
        stored = client.hget(KEYS.meta, "candidate:job")
    client.hset(KEYS.meta, "candidate:job", stored)
    eventually(lambda: candidates(client) == {})
