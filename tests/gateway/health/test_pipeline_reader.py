"""What the gateway reads of the pipeline, from a real Redis."""

from collections.abc import Mapping

import pytest
import redis
from redis.asyncio import Redis

from gateway.health.pipeline_reader import PipelineReader
from gateway.upstream.trade_tail import LogUnread, RedisTradeTail
from ingest.redis_keys import Keys
from ingest.tradelog.redis_log_reader import open_log
from tests.gateway.samples import SAMSUNG

pytestmark = pytest.mark.redis

Fields = Mapping[str, str]


@pytest.mark.parametrize(
    ("key", "fields", "said"),
    [
        ("tt:log", {"form": "2", "id": "x"}, "has the form '2'"),
        ("tt:log", {"partitions": "2"}, "no field b'created_ms'"),
        ("tt:log", {"id": "x", "partitions": "", "created_ms": "1"}, "invalid literal"),
        ("tt:log", None, "WRONGTYPE"),
        ("tt:log:0", None, "WRONGTYPE"),
        ("tt:meta", None, "WRONGTYPE"),
    ],
)
async def test_what_cannot_be_read_is_said_and_read_again(
    client: redis.Redis, redis_url: str, key: str, fields: Fields | None, said: str
) -> None:
    """Redis is not down by that, nor does the gateway end; whoever follows is told."""
    open_log(client, "tt", 1)
    client.delete(key)
    if fields is None:
        client.set(key, "somebody's")
    else:
        client.hset(key, mapping=dict(fields))
    async with Redis.from_url(redis_url) as connection:
        reader = PipelineReader(connection, Keys("tt"), None)
        state = await reader.read()
        assert state.problem is not None
        assert said in state.problem
        assert not state.is_redis_down
        if key != "tt:meta":
            with pytest.raises(LogUnread):
                await RedisTradeTail(connection, "tt").read({SAMSUNG})
        client.delete(key)
        assert (await reader.read(at_most_s=0)).problem is None
