"""The gateway's publisher, for tests of its clients."""

import pytest
import redis

from tests.clients.board import Board
from tests.gateway.conftest import publisher

__all__ = ["board", "publisher"]


@pytest.fixture
def board(client: redis.Redis, redis_url: str) -> Board:
    return Board(client, redis_url)
