"""What a stranger does to a gateway that runs as a process of its own."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import redis

from tests.conftest import eventually
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.run_stranger import ATTACKS, SILENCE, Tally, attack
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import Gateway, Stream
from tests.ports import free_port

pytestmark = pytest.mark.redis

RUN = """
import os, resource, signal, sys
from cli.logs import configure_logs
from gateway.server import run_gateway
from gateway.settings import GatewaySettings

taken = []

def take_every_descriptor(*_):
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass

def give_them_back(*_):
    while taken:
        os.close(taken.pop())

signal.signal(signal.SIGUSR1, take_every_descriptor)
signal.signal(signal.SIGUSR2, give_them_back)
soft, hard = map(int, sys.argv[1:3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
settings = GatewaySettings()
configure_logs(settings)
run_gateway(settings)
"""

MOST_GROWTH_BYTES = 100 << 20

MOST_LAG_S = 5.0


class Running(NamedTuple):
    """A gateway's process, and what it says."""

    gateway: Gateway
    process: psutil.Process
    log: Path

    def told(self) -> str:
        """Return every line of its log."""
        return self.log.read_text()

    def stream_is_well(self) -> bool:
        """Say whether somebody who behaves is answered."""
        with suppress(OSError):
            return self.gateway.get("/health/live")[0] == 200
        return False


@contextmanager
def running(
    redis_url: str, folder: Path, soft: int, hard: int, **settings: object
) -> Iterator[Running]:
    """Run a gateway that may open so many files at first, and at most."""
    port, log = free_port(), folder / "gateway.log"
    variables = {
        "REDIS_URL": redis_url,
        "TICKTHROTTLE_PORT": str(port),
        "TICKTHROTTLE_LOG_FORMAT": "json",
        **{f"TICKTHROTTLE_{name.upper()}": str(v) for name, v in settings.items()},
    }
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(soft), str(hard)],
            stdout=out,
            stderr=out,
            env=os.environ | variables,
        )
    gateway = Gateway("127.0.0.1", port, None, port + 1)
    try:
        eventually(gateway.is_loaded, 60)
        yield Running(gateway, psutil.Process(process.pid), log)
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 0, log.read_text()


def late_samples(gateway: Gateway) -> float:
    """Return how often the event loop was later than it may be under attack."""
    text = gateway.operators.get("/metrics")[1].decode()
    name = "tickthrottle_gateway_loop_lag_seconds"
    values = dict(
        line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(name)
    )
    return float(values[f"{name}_count"]) - float(
        values[f'{name}_bucket{{le="{MOST_LAG_S}"}}']
    )


def test_a_stranger_costs_nobody_anything(
    publisher: Publisher, redis_url: str, tmp_path: Path
) -> None:
    """Everything at once: a client misses nothing, and afterwards all is as before."""
    publisher.publish(make_row(SAMSUNG))
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    with (
        running(redis_url, tmp_path, 1_024, 4_096, token_key_file=key) as found,
        found.gateway.stream() as stream,
    ):
        token = make_token()
        stream.say(op="auth", token=token)
        stream.take("ack")
        stream.subscribe(SAMSUNG)
        before_bytes = found.process.memory_info().rss
        before_files = found.process.num_fds()
        tallies = asyncio.run(attack("127.0.0.1", found.gateway.port, 60, 40))
        publisher.publish(make_row(SAMSUNG, seq=2))
        assert next_update(stream)["data"][0]["seq"] == 2
        eventually(found.stream_is_well)
        check_answers(tallies)
        eventually(lambda: found.process.num_fds() <= before_files + 4, 60)
        grown = found.process.memory_info().rss - before_bytes
        assert grown < MOST_GROWTH_BYTES, f"{grown >> 20} MiB"
        assert late_samples(found.gateway) == 0
        told = found.told()
    assert "Traceback" not in told
    assert '"exception"' not in told
    assert token[:20] not in told


def next_update(stream: Stream) -> dict[str, Any]:
    """Return the next update, whatever the gateway says of its feed before."""
    while True:
        frame = stream.next()
        if frame["type"] == "update":
            return frame
        assert frame["type"] in ("heartbeat", "status")


def check_answers(tallies: dict[str, Tally]) -> None:
    """Every attack took place, and was answered as it is written."""
    assert set(tallies) == {SILENCE, *ATTACKS}
    assert all(tally.connections >= 40 for tally in tallies.values()), tallies
    for tally in tallies.values():
        assert tally.answers["500"] == 0, tallies
    heads = tallies["endless heads"].answers
    assert heads["431"] > 0, heads
    assert heads["held"] == 0, heads
    tokens = tallies["odd tokens"].answers
    assert tokens["401"] > 0, tokens
    assert tokens["closed with 4501"] > 0, tokens
    assert set(tallies["odd origins"].answers) <= {"403", "reset"}, tallies


def test_a_process_that_runs_out_of_descriptors_goes_on(
    publisher: Publisher, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Streams and answers go on beside more connections than it may have files.

    Nor does it end when nothing at all can be opened, while its connection to Redis
    breaks.
    """
    publisher.publish(make_row(SAMSUNG))
    with (
        running(redis_url, tmp_path, 256, 512) as found,
        found.gateway.stream() as stream,
    ):
        stream.subscribe(SAMSUNG)
        with ExitStack() as stack:
            for _ in range(700):
                address = (found.gateway.host, found.gateway.port)
                stack.enter_context(socket.create_connection(address, 10))
            eventually(found.stream_is_well)
            # Operators have room of their own.
            assert found.gateway.count("connections_cut_full") > 300
            assert 256 < found.process.num_fds() < 512
        told = [json.loads(line) for line in found.told().splitlines()]
        warned = [line for line in told if line["level"] == "warning"]
        assert warned[0]["open_files"] == 512
        assert warned[0]["room"] < 512

        failed = found.gateway.count("connects_failed")

        def has_none_left() -> bool:
            # Connections from before may still be closing and leave room.
            found.process.send_signal(signal.SIGUSR1)
            return found.process.num_fds() == 512

        eventually(has_none_left)
        client.client_kill_filter(_type="pubsub")
        with suppress(OSError):
            found.gateway.get("/health/live")
        eventually(lambda: "feed interrupted" in found.told())
        found.process.send_signal(signal.SIGUSR2)
        eventually(found.stream_is_well)
        found.gateway.wait_for("connects_failed", failed + 1)
        eventually(lambda: bool(client.pubsub_channels()))
        publisher.publish(make_row(SAMSUNG, seq=2))
        assert next_update(stream)["data"][0]["seq"] == 2
