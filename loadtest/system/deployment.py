"""The deployment that is put under load: one started here, or one that runs."""

import json
import socket
import threading
import urllib.error
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import psutil
import redis
from pydantic import ValidationError
from rich.console import Console

from cli.local.process_tree import Named, job_family, members
from cli.local.settings import RunSettings
from ingest.process.direct_http import open_direct
from ingest.process.ports import free_port, why_taken
from ingest.process.redact import problems_of, server_address
from ingest.redis_keys import Keys
from ingest.settings import IngestSettings
from tickthrottle_client.redis_primary import connect

if TYPE_CHECKING:
    from cli.local.runner import Runner

JOB, MAX_AHEAD_MS = "throttle", 5_000
"""The job's name, and how far ahead it lets a trade be, by default."""

LOAD_SETTINGS: Mapping[str, str] = {
    "TICKTHROTTLE_MAX_CLIENTS": "20000",
    "TICKTHROTTLE_MAX_CLIENTS_PER_ADDRESS": "20000",
    "TICKTHROTTLE_REQUESTS_PER_SECOND": "20000",
    "TICKTHROTTLE_ROWS_PER_SECOND": "10000000",
    "TICKTHROTTLE_MAX_CONNECTIONS": "20000",
    # All trades of a run stay in the log, so that it can be read again at the end.
    "TICKTHROTTLE_TRADE_LOG_CAP": "20000000",
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": "86400",
    # Whether trades come is the load's business.
    "TICKTHROTTLE_QUIET_S": "0",
}
"""What a deployment started for a load is told beyond its defaults."""

_PREFIX = "TICKTHROTTLE_"
_ANSWER_WITHIN_S = 5.0
_READY_WITHIN_S = 60.0


class DeploymentError(RuntimeError):
    """The deployment cannot be started or reached; the message says why."""


@dataclass(frozen=True)
class Deployment:
    """Where a deployment is, what it was told, and what runs here of it."""

    targets: tuple[tuple[str, int], ...]
    """Host and port of each gateway."""
    ingest: IngestSettings
    """What a feed needs to append to its trade log."""
    job: str
    window_ms: int
    max_ahead_ms: int
    processes: Callable[[], list[Named]] = field(repr=False)
    """What runs here of it at the moment; empty where it runs elsewhere."""
    incidents: Callable[[], list[str]] = field(repr=False)
    """Which of its parts have ended since the start, in words."""
    logs: Path = Path()
    """Folder with a log of each part that was started here."""

    @property
    def redis_url(self) -> str:
        return self.ingest.redis_url

    @property
    def namespace(self) -> str:
        return self.ingest.namespace


@contextmanager
def local(
    port: int | None = None,
    window_ms: int = 2_000,
    settings: Mapping[str, str] | None = None,
    *,
    archive: bool = False,
    analytics: str = "off",
) -> Iterator[Deployment]:
    """Start a deployment without a feed, with files in a temporary folder; end it.

    ``settings`` are environment variables of its parts; they win over what a load sets
    (``LOAD_SETTINGS``). ``archive`` and ``analytics`` run beside it. It is ready:
    windows are being published. Raises DeploymentError.
    """
    # Here: who loads a deployment elsewhere needs neither Spark nor an embedded server.
    from cli.local.ports_and_memory import RunFailed
    from cli.local.runner import Runner

    port = free_port() if port is None else port
    for number in (port, port + 1):
        if (reason := why_taken(number)) is not None:
            raise DeploymentError(f"port {number}: {reason}; choose another one")
    stop = threading.Event()
    with TemporaryDirectory(prefix="tickthrottle-load-") as folder:
        window = {f"{_PREFIX}WINDOW_MS": str(window_ms)}
        try:
            # The page's port and the operators' are the load's to choose.
            run = RunSettings(
                port=port,
                operators_port=port + 1,
                state_dir=Path(folder),
                archive=archive,
                analytics=analytics,
            )
        except ValidationError as error:
            raise DeploymentError(problems_of(error)) from None
        runner = Runner(
            run,
            Path(folder),
            stop,
            has_feed=False,
            persistent=False,
            overrides={**LOAD_SETTINGS, **window, **(settings or {})},
            console=Console(stderr=True, highlight=False, quiet=True),
        )
        gave_up: list[str] = []

        def watch() -> None:
            """Restart the parts that die, until that is given up."""
            try:
                runner.watch()
            except RunFailed as error:
                gave_up.append(str(error))

        watching = threading.Thread(target=watch, name="parts", daemon=True)
        try:
            runner.start()
            deployment = _of_run(runner, lambda: [*runner.incidents, *gave_up])
            _wait_ready(runner.port)
            watching.start()
            yield deployment
        except RunFailed as error:
            raise DeploymentError(str(error)) from error
        finally:
            stop.set()
            if watching.ident is not None:
                watching.join()
            runner.stop()


@contextmanager
def attached(gateways: Sequence[str], ingest: IngestSettings) -> Iterator[Deployment]:
    """Yield a deployment that runs already; it goes on running.

    ``gateways`` are addresses such as ``http://127.0.0.1:8000``. Raises
    DeploymentError when one of them or Redis cannot be reached, when the job has never
    published, or when a gateway shows another stream.
    """
    if not gateways:
        raise DeploymentError("gateways: at least one address is needed")
    targets = tuple(map(_target, gateways))
    epoch, window_ms = _read_stream(ingest, JOB)
    for url, target in zip(gateways, targets, strict=True):
        shown = _ask_health(*target).get("epoch")
        if shown != epoch:
            raise DeploymentError(
                f"gateway {url}: shows the epoch {shown}, redis_url "
                f"{server_address(ingest.redis_url)} has {epoch} under "
                f"{ingest.namespace}"
            )
    yield Deployment(
        targets,
        ingest,
        JOB,
        window_ms,
        MAX_AHEAD_MS,
        lambda: find_family(ingest.redis_url, ingest.namespace, JOB, targets),
        list,
    )


def _of_run(runner: "Runner", incidents: Callable[[], list[str]]) -> Deployment:
    environment = runner.environment
    settings: dict[str, Any] = {
        name: environment[_PREFIX + name.upper()]
        for name in IngestSettings.model_fields
        if _PREFIX + name.upper() in environment
    }
    # How the parts log is nothing for whoever feeds them.
    settings |= {"log_level": "warning", "log_format": "auto"}
    settings["redis_url"] = runner.redis_url
    try:
        ingest = IngestSettings(**settings)
    except ValidationError as error:
        raise DeploymentError(problems_of(error)) from None
    return Deployment(
        (("127.0.0.1", runner.port),),
        ingest,
        environment.get(f"{_PREFIX}JOB", JOB),
        int(environment[f"{_PREFIX}WINDOW_MS"]),
        int(environment.get(f"{_PREFIX}MAX_AHEAD_MS", MAX_AHEAD_MS)),
        runner.processes,
        incidents,
        runner.logs,
    )


def _wait_ready(port: int) -> None:
    """Wait until the gateway has windows. Raises DeploymentError."""
    deadline = monotonic() + _READY_WITHIN_S
    while True:
        health = _ask_health("127.0.0.1", port)
        if health["ready"]:
            return
        if monotonic() > deadline:
            raise DeploymentError(
                f"the gateway was not ready within {_READY_WITHIN_S:g} s: "
                f"{health.get('reason')}"
            )
        sleep(0.05)


def _ask_health(host: str, port: int) -> dict[str, Any]:
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/health/ready"
    try:
        with open_direct(url, _ANSWER_WITHIN_S) as answer:
            return cast("dict[str, Any]", json.load(answer))
    except urllib.error.HTTPError as error:
        # Not ready is an answer too.
        with error:
            body = error.read()
        if error.code == 503 and body.startswith(b"{"):
            return cast("dict[str, Any]", json.loads(body))
        raise DeploymentError(f"gateway {url}: answers {error.code}") from None
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"gateway {url}: {getattr(error, 'reason', error)}"
        ) from None


def _target(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host, port = None, 0
    if host is None or parts.scheme not in ("http", "ws"):
        raise DeploymentError(
            f"gateway {url!r}: must be like http://127.0.0.1:8000, without TLS"
        )
    return host, port


def _read_stream(ingest: IngestSettings, job: str) -> tuple[str, int]:
    """Return the epoch of the stream and its window's length."""
    keys, address = Keys(ingest.namespace), server_address(ingest.redis_url)
    try:
        with connect(ingest.redis_url) as client:
            fields = ["epoch", "window_ms", f"cut:{job}"]
            meta = cast("list[bytes | None]", client.hmget(keys.meta, fields))
    except (redis.RedisError, ValueError, OSError) as error:
        raise DeploymentError(f"redis_url {address}: {error}") from None
    epoch, window_ms, cut = meta
    if epoch is None or window_ms is None or cut is None:
        raise DeploymentError(
            f"job {job}: has published nothing under {keys.meta} at {address}"
        )
    return epoch.decode(), int(window_ms)


def find_family(
    redis_url: str, namespace: str, job: str, gateways: tuple[tuple[str, int], ...]
) -> list[Named]:
    """Return the server, the job and the gateways, as far as they run on this machine.

    The server tells its process, the job's lease names the job's, and a gateway is who
    listens on its port. What cannot be found is left out.
    """
    family: list[Named] = []
    with suppress(redis.RedisError), connect(redis_url) as client:
        host = client.connection_pool.connection_kwargs.get("host", "localhost")
        if _is_here(str(host)):
            info = cast("dict[str, Any]", client.info("server"))
            family += members("valkey", int(info["process_id"]))
        lease = cast("bytes | None", client.get(Keys(namespace).lease(job)))
        if lease is not None:
            owner = lease.decode().partition(" ")[2]
            host, _, number = owner.rpartition(":")[0].rpartition(":")
            if host == socket.gethostname():
                family += job_family("throttle", int(number))
    ports = {port for host, port in gateways if _is_here(host)}
    for pid in listening_pids(ports):
        family += members("gateway", pid)
    return family


def listening_pids(ports: set[int]) -> list[int]:
    """Return who listens on one of these ports; nobody where that is not told."""
    with suppress(psutil.Error, OSError):
        pids = {
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
            if connection.laddr and connection.laddr.port in ports
        }
        return sorted(pid for pid in pids if pid is not None)
    return []


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
