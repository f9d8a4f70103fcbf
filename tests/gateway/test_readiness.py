"""A real gateway says what is wrong, since when, and sends clients away in time."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import redis

from cli.local.valkey import valkey_command, wait_for_server
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port

pytestmark = pytest.mark.redis


@contextmanager
def own_server(port: int, folder: Path) -> Iterator[str]:
    """Run a server that can be killed without hurting any other test."""
    process = subprocess.Popen(valkey_command(port, folder), stdout=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}/0"
        assert wait_for_server(url, 10) is not None
        yield url
    finally:
        process.kill()
        process.wait()


def codes(gateway: Gateway) -> list[str]:
    """Return the reasons the public is told."""
    body = json.loads(gateway.get("/health/ready")[1])
    assert body["ready"] == (not body["reasons"])
    return [reason["code"] for reason in body["reasons"]]


def test_a_market_without_trades_is_a_fault_where_it_is_said_to_be(
    client: redis.Redis, redis_url: str
) -> None:
    """Windows go on, but a dead feed is not all well; one trade ends it."""
    publisher = Publisher(client)
    publisher.publish(make_row())
    with (
        running_gateway(redis_url, quiet_s=0.5) as wary,
        running_gateway(redis_url) as calm,
    ):
        wary.wait_until(1)

        def is_quiet() -> bool:
            publisher.publish()
            return codes(wary) == ["quiet"]

        eventually(is_quiet)
        first = wary.health()["reasons"][0]
        assert first["message"].startswith("no trade for ")
        assert abs(first["since_ms"] - time.time() * 1_000) < 10_000
        eventually(lambda: codes(calm) == [])
        seqs = count(2)

        def is_well() -> bool:
            publisher.publish(make_row(seq=next(seqs)))
            return codes(wary) == []

        eventually(is_well)


def test_a_server_that_dies_is_named_and_its_return_is_seen(tmp_path: Path) -> None:
    """The cause first, the silence that follows from it second."""
    port = free_port()
    with (
        own_server(port, tmp_path) as url,
        redis.Redis.from_url(url) as client,
        running_gateway(url) as gateway,
    ):
        publisher = Publisher(client, window_ms=500)
        publisher.publish(make_row())
        gateway.wait_until(1)
        seqs = count(2)

        def is_well() -> bool:
            publisher.publish(make_row(seq=next(seqs)))
            return codes(gateway) == []

        eventually(is_well)
        client.shutdown(nosave=True)
        eventually(lambda: codes(gateway)[:1] == ["redis_down"])
        eventually(lambda: codes(gateway) == ["redis_down", "feed_stale"])
        since_ms = gateway.health()["reasons"][0]["since_ms"]
        assert gateway.get("/health/live")[0] == 200
        assert gateway.health()["reasons"][0]["since_ms"] == since_ms
        with own_server(port, tmp_path):
            again = Publisher(client, "other", window_ms=500)

            def recovers() -> bool:
                again.publish(make_row(seq=next(seqs)))
                return codes(gateway) == []

            eventually(recovers)


def test_an_overloaded_gateway_serves_whom_it_has_and_nobody_else(
    client: redis.Redis, redis_url: str
) -> None:
    """New streams are told to try elsewhere; the old one misses nothing."""
    publisher = Publisher(client, window_ms=60_000)
    publisher.publish(make_row())
    # Any Python process uses more.
    with running_gateway(redis_url, max_memory_bytes=1_048_576) as gateway:
        gateway.wait_until(1)
        with gateway.stream() as stream:
            stream.subscribe("*")
            eventually(lambda: "overloaded" in codes(gateway))
            assert gateway.close_code_of_a_new_stream() == 1013
            status, body = gateway.get("/v1/sse?keys=*")
            assert (status, json.loads(body)["code"]) == (503, "overloaded")
            assert "MiB is the most for new clients" in json.loads(body)["detail"]
            assert gateway.count("clients_shed") == 2
            publisher.publish(make_row(seq=2))
            assert stream.take("update")["offset"] == 2
            assert gateway.get("/v1/quotes")[0] == 200


def test_a_policy_that_changes_on_a_live_server_is_found(tmp_path: Path) -> None:
    """Within seconds, with what to set; so is a gauge of it, and of the memory."""
    with (
        own_server(free_port(), tmp_path) as url,
        redis.Redis.from_url(url) as client,
        running_gateway(url) as gateway,
    ):
        operators = gateway.operators

        def findings() -> dict[str, str]:
            answer = json.loads(operators.get("/v1/pipeline")[1])
            found = answer["diagnosis"]["findings"]
            return {finding["code"]: finding["detail"] for finding in found}

        assert "may_evict" not in findings()
        client.config_set("maxmemory", 100_000_000)
        client.config_set("maxmemory-policy", "allkeys-lfu")
        eventually(lambda: "may_evict" in findings(), 5)
        assert "CONFIG SET maxmemory-policy noeviction" in findings()["may_evict"]

        def shown() -> bool:
            metrics = operators.get("/metrics")[1].decode()
            return (
                'tickthrottle_gateway_finding{code="may_evict"} 1.0' in metrics
                and "tickthrottle_gateway_redis_max_memory_bytes 1e+08" in metrics
            )

        eventually(shown)
        client.config_set("maxmemory-policy", "noeviction")
        eventually(lambda: "may_evict" not in findings(), 5)


def test_a_calendar_that_ends_is_found(redis_url: str, tmp_path: Path) -> None:
    """A calendar of a user's own, by its path."""
    path = tmp_path / "mine.json"
    last = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 29 * 86_400))
    calendar = {"market": "MINE", "zone": "UTC", "days": "Mon-Sun", "last": last}
    path.write_text(json.dumps(calendar | {"sessions": ["00:00-24:00"]}), "utf-8")
    with running_gateway(redis_url, market_hours=str(path)) as gateway:
        found = json.loads(gateway.operators.get("/v1/pipeline")[1])["diagnosis"][
            "findings"
        ]
        details = {finding["code"]: finding["detail"] for finding in found}
        assert details["calendar_ends"] == f"MINE on {last}"


def test_a_closed_market_is_not_quiet(client: redis.Redis, redis_url: str) -> None:
    """A gateway that knows the hours is ready at night, and says that it is night."""
    publisher = Publisher(client)
    publisher.publish(make_row())
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    hours = f"UTC {days[time.gmtime().tm_wday - 3]} 00:00-00:01"
    with running_gateway(redis_url, quiet_s=0.5, market_hours=hours) as night:
        night.wait_until(1)
        began_s = time.monotonic()
        while time.monotonic() - began_s < 1.5:
            publisher.publish()
            assert codes(night) == []
        metrics = night.operators.get("/metrics")[1].decode()
        assert 'tickthrottle_gateway_market_open{market="UTC"} 0.0' in metrics
