"""The whole pipeline on Redis with TLS, users and Sentinels; its primary is killed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import redis
from typer.testing import CliRunner

from cli.command_line import app
from ingest.redis_keys import Keys
from tests.chained import check_chain
from tests.conftest import PATIENCE, eventually
from tests.e2e.books import check_against_oracle
from tests.e2e.checker import checker_at
from tests.e2e.processes import Running, running
from tests.gateway.servers import running_gateway
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA
from tests.redis_servers import RedisServers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(300),
]

W = 500
RATE = 2_000
ON_ITS_WAY_BYTES = 1 << 16
USERS = {
    "simulate": "tt-feed",
    "throttle": "tt-job",
    "gateway": "tt-gateway",
    "archive": "tt-archive",
    "reconcile": "tt-tools",
}
KEEP = {
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": "86400",
    "TICKTHROTTLE_WINDOW_LOG": "100000",
    "TICKTHROTTLE_WINDOW_MS": str(W),
    # The names of instruments are another right.
    "TICKTHROTTLE_LIST_INSTRUMENTS": "false",
    "TICKTHROTTLE_REDIS_REPLICAS": "1",
}


class Pipeline:
    """Processes of one pipeline, each as its own user, by way of the Sentinels."""

    def __init__(self, servers: RedisServers, folder: Path) -> None:
        self.servers = servers
        self.folder = folder
        self._state = folder / "state"
        self._state.mkdir()
        (folder / "logs").mkdir()

    def environment(self, command: str) -> dict[str, str]:
        """Return the settings of a command."""
        return {
            **KEEP,
            **QUICK_JAVA,
            "REDIS_URL": self.servers.url(USERS[command]),
            "TICKTHROTTLE_STATE_DIR": str(self._state),
        }

    def start(self, command: str, *options: str) -> AbstractContextManager[Running]:
        """Start a process; a context manager that ends it."""
        environment = self.environment(command)
        return running(self.folder / "logs", command, *options, **environment)


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """Nothing runs yet but the servers."""
    with RedisServers(tmp_path, is_tls=True) as servers:
        yield Pipeline(servers, tmp_path)


def test_a_primary_killed_under_load_costs_nothing_that_was_acknowledged(
    pipeline: Pipeline, record_property: Callable[[str, object], None]
) -> None:
    """TLS alone, least rights, and SIGKILL: Sentinel makes a replica the primary.

    Every trade that the feed was told of is in the log of the new one, if that is the
    replica that has most; which it is, Sentinel goes by what each said of itself last.
    Each window is what the oracle says, and the books balance. No client sees an
    instrument go back.
    """
    servers, receipt = pipeline.servers, pipeline.folder / "receipt.json"
    port = free_port()
    with ExitStack() as stack:
        job = stack.enter_context(pipeline.start("throttle"))
        gateway = stack.enter_context(pipeline.start("gateway", "--port", str(port)))
        feed = stack.enter_context(
            pipeline.start("simulate", "--rate", str(RATE), "--report", str(receipt))
        )
        archive = stack.enter_context(
            pipeline.start("archive", "--dir", str(pipeline.folder / "archive"))
        )
        processes = (job, gateway, feed, archive)
        job.wait_for('"event": "ready"', within_s=120)
        checker = checker_at(port, gateway)
        eventually(lambda: checker.problems or checker.updates > 6, 60)
        direct = servers.url(USERS["gateway"], servers.ports[0])
        with running_gateway(direct) as other:
            other.wait_until(6)
        eventually(lambda: is_level(servers), 60)
        killed_at = checker.window
        servers.kill(servers.ports[0])
        began_s = time.monotonic()
        has = {port: offset_of(servers, port) for port in servers.ports[1:]}
        for what, happened in (
            ("new_primary_s", lambda: servers.primary_port() != servers.ports[0]),
            ("windows_again_s", lambda: checker.window > killed_at + 2 * W),
            ("six_seconds_more_s", lambda: checker.window > killed_at + 12 * W),
        ):
            eventually(lambda c=happened: checker.problems or c(), 60)
            record_property(what, round(time.monotonic() - began_s, 1))
        feed.process.terminate()
        assert feed.process.wait(timeout=20 * PATIENCE) == 0, feed.log()
        for process in processes:
            assert "Traceback" not in process.log(), process.log()[-3_000:]
        after = servers.client(servers.primary_port())
        wait_until_all_is_published(after)
        check_against_oracle(after, W)
        check_chain(after)
        assert checker.problems == []
        checker.close()
        lacks = max(has.values()) - has[servers.primary_port()]
        record_property("bytes_that_the_new_primary_lacks", lacks)
        if not lacks:
            reconcile(pipeline, receipt)
    told = json.loads(receipt.read_text())
    assert sum(part["acknowledged"] for part in told["partitions"]) > 5 * RATE


def offset_of(servers: RedisServers, port: int) -> int:
    """Return how much of what was written a server has, in bytes."""
    info = servers.client(port).info("replication")
    return int(info.get("slave_repl_offset") or info["master_repl_offset"])


def is_level(servers: RedisServers) -> bool:
    """Return whether no replica is behind by more than what is on its way."""
    primary, *replicas = (offset_of(servers, port) for port in servers.ports)
    return primary - min(replicas) < ON_ITS_WAY_BYTES


def wait_until_all_is_published(client: redis.Redis) -> None:
    """Wait until the window of the newest trade is."""
    ids = [client.xrevrange(f"tt:log:{p}", count=1)[0][0] for p in range(4)]
    newest_ms = max(int(entry_id.split(b"-")[0]) for entry_id in ids)
    key = Keys("tt").meta
    eventually(lambda: int(client.hget(key, "window") or 0) > newest_ms, 60)


def reconcile(pipeline: Pipeline, receipt: Path) -> None:
    """Compare what the feed was told with what the log of the new primary holds."""
    arguments = ["reconcile", "--acknowledged", str(receipt)]
    environment = pipeline.environment("reconcile")
    result = CliRunner().invoke(app, arguments, env=environment)
    assert result.exit_code == 0, result.output
