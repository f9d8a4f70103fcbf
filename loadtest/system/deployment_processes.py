"""Finds the processes of a deployment that was not started here but runs here."""

import socket
from contextlib import suppress
from typing import Any, cast

import psutil
import redis

from cli.local.process_tree import Named, job_family, members
from ingest.redis_keys import Keys
from tickthrottle_client.redis_primary import connect


def find_family(
    redis_url: str, namespace: str, job: str, gateways: tuple[tuple[str, int], ...]
) -> list[Named]:
    """Return the server, the job and the gateways, as far as they run on this machine.

    The server tells its process, the job's lease names the job's, and a gateway is who
    listens on its port. What cannot be found is left out.
    """
    found: list[Named] = []
    with suppress(redis.RedisError), connect(redis_url) as client:
        host = client.connection_pool.connection_kwargs.get("host", "localhost")
        if _is_here(str(host)):
            info = cast("dict[str, Any]", client.info("server"))
            found += members("valkey", int(info["process_id"]))
        lease = cast("bytes | None", client.get(Keys(namespace).lease(job)))
        if lease is not None:
            found += _job(lease)
    ports = {port for host, port in gateways if _is_here(host)}
    for pid in _listeners(ports):
        found += members("gateway", pid)
    return found


def _job(lease: bytes) -> list[Named]:
    owner = lease.decode().partition(" ")[2]
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    return job_family("throttle", int(rest)) if host == socket.gethostname() else []


def _listeners(ports: set[int]) -> list[int]:
    if not ports:
        return []
    with suppress(psutil.Error, OSError):
        pids = {
            one.pid
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
            if one.laddr and one.laddr.port in ports
        }
        return sorted(pid for pid in pids if pid is not None)
    return []


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
