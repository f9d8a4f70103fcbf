"""Which servers may be named, and a sentence for those that may not."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, Popen

import pytest
import redis

from cli.local.valkey import valkey_command, wait_for_server
from ingest.tradelog.contract import LogUnusable
from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import eventually
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from throttle.job import ThrottleFailed, run_throttle
from throttle.settings import ThrottleSettings
from tickthrottle_client.redis_address import (
    SentinelAddress,
    check_redis_url,
    why_unusable,
)


def test_an_address_that_a_client_can_be_made_of_is_taken() -> None:
    """As it is."""
    for url in (
        "redis://host",
        "redis://host:6379/",
        "redis://me:pass%2Fword@host:6379/15",
        "rediss://[::1]:6379/0?ssl_cert_reqs=none",
        "unix:///run/valkey.sock?db=2",
        "redis+sentinel://me:pass@a:26379,b,[::1]:3/main/2?sentinel_username=me",
    ):
        assert check_redis_url(url) == url


def test_an_address_that_means_something_else_is_refused() -> None:
    """Not taken for database 0 of this machine."""
    for url, rule in (
        ("redis://host/x", "the database must be a number"),
        ("redis://host/1/2", "the database must be a number"),
        ("redis://host:99999", "the port must be a number from 1 to 65535"),
        ("redis://host?foo=1", "the client has no option 'foo'"),
        ("redis+sentinel://host:26379", "must say what Sentinel calls the primary"),
        ("redis+sentinel:///main", "must name Sentinels, as in redis+sentinel://"),
        ("redis+sentinel://a,,b/main", "must name Sentinels, as in redis+sentinel://"),
        ("redis+sentinel://host:x/main", "the port must be a number"),
        ("redis+sentinel://host/main/x", "the database must be a number"),
        ("redis+sentinel://host/main?foo=1", "the client has no option 'foo'"),
        ("unix+sentinel://host/main", "Sentinels are asked by an address redis+sen"),
        ("rediss+cluster://host", "Redis Cluster is not supported; give the address"),
        ("host:6379", "must begin with redis://, rediss:// or unix://"),
        ("redis://[", "cannot be taken apart"),
        ("rediss://h?ssl_cert_reqs=x", "Invalid SSL Certificate Requirements Flag"),
        ("rediss://h?ssl_ca_certs=/no/ca", "ssl_ca_certs /no/ca: there is no such fi"),
        ("rediss+sentinel://h/n?ssl_keyfile=/no/k", "ssl_keyfile /no/k: there is no"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(rule)}"):
            check_redis_url(url)


def test_an_address_by_sentinel_is_taken_apart() -> None:
    """What is for the primary, what for the Sentinels, and what for both."""
    url = "rediss+sentinel://me:a%2Fb@h:1,[::1]/main/2?ssl_ca_certs=x"
    address = SentinelAddress.parse(url + "&sentinel_password=c%26d&db_hint=0")
    assert address is not None
    assert address.sentinels == (("h", 1), ("::1", 26_379))
    assert address.name == "main"
    primary = "rediss://me:a%2Fb@primary/2?ssl_ca_certs=x&db_hint=0"
    assert address.primary_url == primary
    assert address.options == {"ssl_ca_certs": "x", "password": "c&d"}
    assert address.sentinel_url == "rediss://sentinel?ssl_ca_certs=x&password=c%26d"
    assert SentinelAddress.parse("rediss://h") is None


def test_only_a_server_that_stands_alone_is_usable() -> None:
    """What the server says of itself decides, not its address."""
    assert why_unusable({"redis_mode": "standalone"}) is None
    assert "runs as a Redis Cluster" in str(why_unusable({"server_mode": "cluster"}))
    assert "runs as a Redis Sentinel" in str(why_unusable({"redis_mode": "sentinel"}))


@pytest.fixture
def cluster_url(tmp_path: Path) -> Iterator[str]:
    """The address of a server in cluster mode."""
    port = free_port()
    command = [*valkey_command(port, tmp_path), "--cluster-enabled", "yes"]
    # Its own would be 10,000 above, where others' connections have theirs.
    command += ["--cluster-port", str(free_port())]
    process = Popen(command, stdout=DEVNULL)
    url = f"redis://127.0.0.1:{port}"
    try:
        assert wait_for_server(url, within_s=30)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.mark.redis
def test_a_server_in_cluster_mode_is_told_at_the_start(
    cluster_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """To whoever opens the log, by the job before Spark starts, and by a gateway."""
    with (
        redis.Redis.from_url(cluster_url) as client,
        pytest.raises(LogUnusable, match="runs as a Redis Cluster: the keys of one"),
    ):
        open_log(client, "tt", 4)
    with pytest.raises(ThrottleFailed, match="runs as a Redis Cluster"):
        run_throttle(ThrottleSettings(redis_url=cluster_url), threading.Event())
    with running_gateway(cluster_url):
        output = ""

        def is_told() -> bool:
            nonlocal output
            output += "".join(capfd.readouterr())
            return "runs as a Redis Cluster" in output

        eventually(is_told, 30)
