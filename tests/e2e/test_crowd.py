"""One gateway process and thousands of clients of another make."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
import redis

from tests.conftest import eventually, skip_or_fail
from tests.gateway.crowd import crowd
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_priced_row
from tests.gateway.servers import Gateway
from tests.gateway.stalled import StalledReader
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

INSTRUMENTS = make_isins(300)
KEYS_EACH = 30
MB = 1_000_000


class Served:
    """A gateway in a process of its own."""

    def __init__(self, pid: int, port: int) -> None:
        self.gateway = Gateway("127.0.0.1", port, None)
        self._process = psutil.Process(pid)

    def memory_mb(self) -> float:
        """Return its resident memory."""
        return float(self._process.memory_info().rss) / MB


RUN = """
import sys
from gateway.admission.bounds import Bounds
from gateway.server import listen
from gateway.settings import GatewaySettings
# That a late gateway, or a late crowd, costs clients their streams is not tested here.
bounds = Bounds(loop_lag_s=60, slow_close_s=200, first_keys_s=200, request_s=200)
listen(GatewaySettings(), bounds=bounds).run()
"""


@contextmanager
def served(redis_url: str) -> Iterator[Served]:
    """Run a gateway, open to crowds from one address."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN],
        env={
            **os.environ,
            "REDIS_URL": redis_url,
            "TICKTHROTTLE_PORT": str(port),
            "TICKTHROTTLE_MAX_CLIENTS": "20000",
            "TICKTHROTTLE_MAX_CLIENTS_PER_ADDRESS": "20000",
            "TICKTHROTTLE_MAX_CONNECTIONS": "20000",
            "TICKTHROTTLE_MAX_CONNECTIONS_PER_ADDRESS": "20000",
            "TICKTHROTTLE_REQUESTS_PER_SECOND": "20000",
            "TICKTHROTTLE_ROWS_PER_SECOND": "10000000",
        },
    )
    try:
        found = Served(process.pid, port)
        eventually(found.gateway.is_loaded, 30)
        yield found
    finally:
        process.kill()
        process.wait()


def need_descriptors(count: int) -> None:
    """Skip where a process may not open so many files."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < count:
        skip_or_fail(f"a process needs {count} open files here")


def test_a_stalled_reader_costs_a_thousand_others_nothing(
    client: redis.Redis, redis_url: str
) -> None:
    """Fair: memory stays flat, nobody misses a window, the sleeper wakes to now."""
    need_descriptors(3_000)
    publisher = Publisher(client)
    publisher.publish(*(make_priced_row(isin) for isin in INSTRUMENTS))
    with (
        served(redis_url) as found,
        crowd(found.gateway.port, is_checking=True) as clients,
    ):
        clients.connect(1_000, INSTRUMENTS, KEYS_EACH)
        stalled = StalledReader(found.gateway, "*")
        eventually(lambda: found.gateway.health()["clients"] == 1_001)
        sizes = []
        for seq in range(2, 62):
            publisher.publish(*(make_priced_row(isin, seq=seq) for isin in INSTRUMENTS))
            clients.gather(seq, 1_000)
            sizes.append(found.memory_mb())
        assert clients.faults() == []
        assert max(sizes[30:]) < max(sizes[:30]) + 5
        updates = list(stalled.updates_until(61))
        stalled.close()
    assert len(updates) < 10, "stale windows were queued"
    assert updates[-1]["merged"] > 40
    assert {item["seq"] for item in updates[-1]["data"]} == {61}


def test_thousands_come_back_at_once(client: redis.Redis, redis_url: str) -> None:
    """Resumable: within 2 s all ask again, and each gets what it missed, no more."""
    need_descriptors(6_000)
    count = 4_000
    publisher = Publisher(client)
    publisher.publish(*(make_priced_row(isin) for isin in INSTRUMENTS))
    with (
        served(redis_url) as found,
        crowd(found.gateway.port, is_checking=True) as clients,
    ):
        clients.connect(count, INSTRUMENTS, KEYS_EACH)
        publisher.publish(*(make_priced_row(isin, seq=2) for isin in INSTRUMENTS[:10]))
        found.gateway.wait_until(2)
        before_mb = found.memory_mb()
        assert clients.reconnect(within_s=2) == count
        eventually(lambda: found.gateway.health()["clients"] == count, 20)
        publisher.publish(*(make_priced_row(isin, seq=3) for isin in INSTRUMENTS))
        clients.gather(3, count)
        assert clients.faults() == []
        assert found.memory_mb() < before_mb * 1.25
