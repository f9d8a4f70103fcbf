"""The rights of users in Redis, on a real server: what each process needs."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from cli.command_line import app
from ingest.instrument_table import redis_instrument_store
from ingest.redis_keys import AnalyticsKeys, Keys
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.conftest import eventually
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.servers import running_gateway
from tests.redis_users import documented_users, url_of
from throttle.analytics.analytics_job import AnalyticsFailed, run_analytics
from throttle.contract.cut import newest_cut
from throttle.contract.ledger import Ledger
from throttle.job import ThrottleFailed, run_throttle
from throttle.leadership import Candidate
from throttle.publish.rights import (
    check_rights,
    commands_of_a_job,
    commands_of_analytics,
)
from throttle.settings import AnalyticsSettings, ThrottleSettings
from throttle.telemetry.batch_report import StageWriter
from throttle.window.batch import Batch, BatchWindow, PartitionCount

pytestmark = pytest.mark.redis
ISIN = "KR7005930003"
KEYS = Keys("tt")


@pytest.fixture(autouse=True)
def _users(client: redis.Redis) -> Iterator[None]:
    """Give the server the users that the document has."""
    with documented_users(client):
        yield


def client_of(user: str, redis_url: str) -> redis.Redis:
    """Return a client that is a user."""
    return redis.Redis.from_url(url_of(user, redis_url))


def client_exists(redis_url: str, key: str) -> bool:
    """Tell whether there is a key."""
    with redis.Redis.from_url(redis_url) as client:
        return bool(client.exists(key))


def publish_a_window(redis_url: str) -> None:
    """Do all that a feed and a job do, each as its user, but for Spark."""
    feed, job = (client_of(name, redis_url) for name in ("tt-feed", "tt-job"))
    settings = ThrottleSettings(redis_url=url_of("tt-job", redis_url), partitions=1)
    candidate = Candidate(job, settings, threading.Event())
    candidate.check_rights()
    info = candidate.open_log()
    assert open_log(feed, "tt", 1) == info
    writer = RedisLogWriter(feed, "tt", info, 1_000)
    for _ in range(3):
        writer.append([(ISIN, b"x")] * 2_500)
    assert writer.dropped_at_cap
    candidate.check_free()
    taken = candidate.take(info, lambda: None)
    assert taken is not None
    grant, _ = taken
    reader = RedisLogReader(job, "tt", info)
    end_ms = grant.cut.end_ms + settings.window_ms
    tail = reader.tail(end_ms)
    end = newest_cut(tail, end_ms)
    windows = [BatchWindow(end_ms)]
    with (
        candidate.keeper(grant.term),
        StageWriter(settings.redis_url, KEYS.stages(settings.job)) as stages,
    ):
        stages.write({"batch": "0"})
        batch = Batch(grant.cut, end, windows, [PartitionCount()], ())
        assert candidate.publish(batch, 0).windows == 1
        eventually(lambda: client_exists(redis_url, KEYS.stages(settings.job)))
        assert list(reader.read({0: (-1, tail.positions[0])})) is not None
        reader.trim({0: 0}, 0)
    feed.close()
    job.close()


def test_feed_and_job_do_their_work_with_their_rights(
    client: redis.Redis, redis_url: str
) -> None:
    """As documented, and no more is needed."""
    publish_a_window(redis_url)
    ledger = Ledger.decode("throttle", client.hgetall(KEYS.ledger("throttle")))
    assert ledger is not None
    assert ledger.windows == 1


def test_gateway_and_tools_do_their_work_with_their_rights(
    client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They read, and are told of what is published."""
    publish_a_window(redis_url)
    with running_gateway(url_of("tt-gateway", redis_url)) as gateway:
        gateway.wait_until(1)
        for path in ("/v1/pipeline", "/v1/dead-letters", "/health/ready"):
            _, body = gateway.operators.get(path)
            assert b"permission" not in body.lower()
            assert b"NOPERM" not in body
    monkeypatch.setenv("REDIS_URL", url_of("tt-tools", redis_url))
    for command in ("ledger", "windows", "trades", "trades --dead", "rebuild"):
        result = CliRunner().invoke(app, command.split())
        assert "may not" not in result.output
        assert "permission" not in result.output.lower(), command
    result = CliRunner().invoke(app, ["reconcile"])
    assert "permission" not in result.output.lower()


def test_a_gateway_serves_bars_with_its_rights(
    client: redis.Redis, redis_url: str
) -> None:
    """Over REST and the stream: all that the analytics job publishes."""
    bars = BarPublisher(client)
    bars.publish(make_bar(), make_bar(minute=1))
    bars.publish_movers([make_bar()])
    bars.publish_burst(make_bar())
    bars.publish_move("100", "104")
    publish_a_window(redis_url)
    with running_gateway(url_of("tt-gateway", redis_url)) as gateway:
        gateway.wait_until(1)
        for path in (
            *(f"/v1/bars/{ISIN}", f"/v1/bars/{ISIN}?interval=1d"),
            *("/v1/movers", "/v1/bursts", "/v1/moves", "/v1/quotes?fields=day"),
        ):
            status, body = gateway.get(path)
            assert status == 200, (path, body)
        keys = [f"bars:{name}:*" for name in ("1m", "5m", "1d")]
        with gateway.stream(f"?keys={','.join(keys)},bars:1h:{ISIN}") as stream:
            assert len(stream.take("ack")["accepted"]) == 4
            told = stream.take("bars")["bars"]
            assert {bar["interval"] for bar in told} == {"1m", "5m", "1h", "1d"}
            bars.publish(make_bar(minute=7))
            assert stream.take("bars")["sequence"] == 2


def test_the_instrument_table_is_loaded_and_read_with_their_rights(
    client: redis.Redis,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loader may write it, tools and gateways may read it, and no more."""
    monkeypatch.setattr(redis_instrument_store, "MOST_CHANGES", 4)
    path = tmp_path / "instruments.csv"

    def run(user: str, *command: str) -> str:
        monkeypatch.setenv("REDIS_URL", url_of(user, redis_url))
        result = CliRunner().invoke(app, ["instruments", *command])
        assert (result.exit_code == 0) == ("permission" not in result.output.lower())
        return result.output

    for close in range(1, 9):
        path.write_text(f"isin,prev_close\n{ISIN},{close}\n", "utf-8")
        assert " 0 removed" in run("tt-instruments", "load", str(path))
    assert client.xlen("tt:instruments") <= 4
    assert ISIN in run("tt-tools", "show")
    assert len(run("tt-tools", "history", ISIN).splitlines()) > 1
    path.write_text(f"isin,prev_close\n{ISIN},99\n", "utf-8")
    assert "permission" in run("tt-tools", "load", str(path)).lower()
    with running_gateway(url_of("tt-gateway", redis_url)) as gateway:
        eventually(lambda: b'"prev_close":8' in gateway.get("/v1/instruments")[1])


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (["-hincrby"], "HINCRBY tt:ledger:throttle"),
        (["-xinfo"], "XINFO STREAM"),
        (["-evalsha"], "EVALSHA"),
        (["-multi"], "MULTI"),
        (["resetchannels"], "PUBLISH tt:updates"),
        (["resetkeys", "~tt:log*"], "HSET tt:meta"),
    ],
)
def test_a_job_that_lacks_a_right_ends_before_it_starts_spark(
    client: redis.Redis, redis_url: str, tmp_path: Path, rules: list[str], named: str
) -> None:
    """One sentence: the command, the key, where the rights are listed."""
    client.execute_command("ACL", "SETUSER", "tt-job", *rules)
    url = url_of("tt-job", redis_url)
    settings = ThrottleSettings(redis_url=url, state_dir=tmp_path)
    with pytest.raises(ThrottleFailed) as caught:
        run_throttle(settings, threading.Event())
    assert f"the user may not run {named}" in str(caught.value)
    assert "docs/redis.md" in str(caught.value)
    assert "password" not in str(caught.value)
    assert client.dbsize() == 0


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (["-zremrangebyrank"], "ZREMRANGEBYRANK tt:bars:x"),
        (["resetchannels"], "PUBLISH tt:analytics:bars:updates"),
        (["resetkeys", "~tt:analytics:*", "~tt:log*"], "ZRANGEBYSCORE tt:bars:x"),
        (["resetkeys", "~tt:[abdm]*", "%R~tt:log*"], "HSETNX tt:log"),
    ],
)
def test_an_analytics_job_that_lacks_a_right_says_so_before_it_starts_spark(
    client: redis.Redis, redis_url: str, tmp_path: Path, rules: list[str], named: str
) -> None:
    """With those that are documented it lacks none."""
    url = url_of("tt-analytics", redis_url)
    with client_of("tt-analytics", redis_url) as user:
        check_rights(user, commands_of_analytics(AnalyticsKeys("tt"), "redis"))
        assert open_log(user, "tt", 1)
        client.flushdb()
    client.execute_command("ACL", "SETUSER", "tt-analytics", *rules)
    settings = AnalyticsSettings(redis_url=url, state_dir=tmp_path)
    with pytest.raises(AnalyticsFailed) as caught:
        run_analytics(settings, threading.Event(), nice=0)
    assert f"the user may not run {named}" in str(caught.value)
    assert client.dbsize() == 0


def test_to_ask_for_rights_changes_nothing(client: redis.Redis) -> None:
    """Commands are queued, never run, and the connection can be used again."""
    check_rights(client, commands_of_a_job(KEYS, "throttle", "redis"))
    assert client.dbsize() == 0
    assert client.ping()
