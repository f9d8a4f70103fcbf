"""Servers of Redis as people have them: TLS, users, replicas, Sentinels.

Valkey comes with the dependencies and is built without TLS; Redis with TLS is Debian's,
where one program is the server, the Sentinel and more, by the name it is called.
"""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import redis
from redis.exceptions import RedisError

from cli.local.valkey import valkey_command
from tests.certificates import Certificates, make_certificates
from tests.conftest import eventually, skip_or_fail
from tests.ports import free_port
from tests.redis_users import documented, url_of

NAME = "tt-primary"
"""What the Sentinels call the primary."""

PASSWORD = "password"
SECRET = "secret"
DOWN_AFTER_MS = 1_000
DEBIANS_REDIS = Path("/usr/bin/redis-check-rdb")


class RedisServers:
    """A primary, two replicas and three Sentinels. A context manager that ends them.

    With ``is_tls`` all of them talk TLS alone, nobody may do anything without a
    password, and there are the documented users and no others.
    """

    def __init__(self, folder: Path, *, is_tls: bool = False) -> None:
        if is_tls and not DEBIANS_REDIS.exists():
            skip_or_fail("no redis-tools: the server with TLS")
        self._folder = folder
        self._certificates = make_certificates(folder) if is_tls else None
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()
        self.ports = [free_port() for _ in range(3)]
        self.sentinel_ports = [free_port() for _ in range(3)]

    def __enter__(self) -> Self:
        first, *others = self.ports
        self.start(first)
        for port in others:
            self.start(port, [f"replicaof 127.0.0.1 {first}"])
        for replica in map(self.client, others):
            eventually(lambda r=replica: self._answers(lambda: _is_linked(r)), 30)
        for port in self.sentinel_ports:
            self._start_sentinel(port, first)
        sentinels = [self._sentinel(port) for port in self.sentinel_ports]
        for sentinel in sentinels:
            eventually(lambda s=sentinel: self._answers(lambda: _knows_all(s)), 30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def url(self, user: str | None = None, port: int | None = None) -> str:
        """Return the address by Sentinel, or that of a server, for a user."""
        places = ",".join(f"127.0.0.1:{port}" for port in self.sentinel_ports)
        if port is None:
            url = f"redis+sentinel://{places}/{NAME}/0"
        else:
            url = f"redis://127.0.0.1:{port}/0"
        if self._certificates is None:
            return url
        url = url.replace("redis", "rediss", 1)
        url += f"?ssl_ca_certs={quote(str(self._certificates.authority))}"
        if port is None:
            url += f"&sentinel_username=tt-clients&sentinel_password={PASSWORD}"
        if user is None:
            return url.replace("://", f"://:{SECRET}@")
        return url_of(user, url)

    def client(self, port: int) -> redis.Redis:
        """Return a client of one server that may do everything."""
        client = redis.Redis.from_url(self.url(port=port))
        return self._stack.enter_context(client)

    def primary_port(self) -> int:
        """Return where the Sentinels say that the primary is."""
        sentinel = self._sentinel(self.sentinel_ports[0])
        return int(sentinel.sentinel_get_master_addr_by_name(NAME)[1])

    def kill(self, port: int) -> None:
        """SIGKILL a server."""
        process = self._processes.pop(port)
        process.kill()
        process.wait()

    def start(self, port: int, lines: Sequence[str] = ()) -> None:
        """Start a server."""
        rules = []
        if self._certificates is not None:
            rules = [
                f"user default on >{SECRET} ~* &* +@all",
                *_user_lines("Rights"),
                *_user_lines("Replicas and Sentinels", but="tt-clients"),
                "masteruser tt-replica",
                f"masterauth {PASSWORD}",
            ]
        self._start(port, "redis-server", [*rules, *lines])

    def _start_sentinel(self, port: int, primary: int) -> None:
        lines = [
            f"sentinel monitor {NAME} 127.0.0.1 {primary} 2",
            f"sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {NAME} 5000",
        ]
        if self._certificates is not None:
            lines += [
                f"sentinel auth-user {NAME} tt-sentinel",
                f"sentinel auth-pass {NAME} {PASSWORD}",
                f"requirepass {SECRET}",
                f"sentinel sentinel-pass {SECRET}",
                *_user_lines("Replicas and Sentinels", only="tt-clients"),
            ]
        self._start(port, "redis-sentinel", lines)

    def _start(self, port: int, name: str, lines: Sequence[str]) -> None:
        folder = self._folder / f"{name}-{port}"
        folder.mkdir(exist_ok=True)
        files = self._certificates
        config = folder / "server.conf"
        config.write_text("\n".join([*_common(port, folder, files), *lines, ""]))
        program = [name]
        executable: str | None = str(DEBIANS_REDIS)
        if files is None:
            program, executable = [valkey_command(port, folder)[0]], None
        command = [*program, str(config)]
        if name == "redis-sentinel":
            command.append("--sentinel")
        with (folder / "log").open("ab") as output:
            self._processes[port] = subprocess.Popen(
                command, executable=executable, stdout=output, stderr=output
            )

    def _answers(self, check: Callable[[], bool]) -> bool:
        for port, process in self._processes.items():
            assert process.poll() is None, self._log_of(port)[-1_000:]
        with suppress(RedisError):
            return check()
        return False

    def _log_of(self, port: int) -> str:
        [log] = self._folder.glob(f"*-{port}/log")
        return log.read_text("utf-8", "replace")

    def _sentinel(self, port: int) -> redis.Redis:
        client = redis.Redis.from_url(self.url(port=port))
        return self._stack.enter_context(client)


def _common(port: int, folder: Path, files: Certificates | None) -> list[str]:
    lines = ["bind 127.0.0.1", f"dir {folder}", 'save ""', "repl-diskless-sync-delay 0"]
    if "sentinel" in folder.name:
        lines = lines[:2]
    if files is None:
        return [*lines, f"port {port}"]
    return [
        *lines,
        "port 0",
        f"tls-port {port}",
        f"tls-cert-file {files.server}",
        f"tls-key-file {files.key}",
        f"tls-ca-cert-file {files.authority}",
        "tls-auth-clients no",
        "tls-replication yes",
    ]


def _user_lines(section: str, only: str = "", but: str = "") -> list[str]:
    # Debian's Redis is 7.0, which does not know that command.
    return [
        f"user {name} {' '.join(rules)}".replace(" +client|setinfo", "")
        for name, rules in documented(section).items()
        if name != but and only in ("", name)
    ]


def _is_linked(replica: redis.Redis) -> bool:
    return bool(replica.info("replication")["master_link_status"] == "up")


def _knows_all(sentinel: redis.Redis) -> bool:
    state = sentinel.sentinel_master(NAME)
    return (state["num-other-sentinels"], state["num-slaves"]) == (2, 2)
