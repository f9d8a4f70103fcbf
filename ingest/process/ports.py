"""Ports of loopback: one that is free, and why one is not."""

import random
import socket
from contextlib import suppress

_LOWEST, _HIGHEST = 20_000, 30_000


def free_port(*taken: int) -> int:
    """Return a free port below those that the system hands out by itself.

    The port after it is free as well: a gateway takes two.

    A client that keeps calling a dead server's port from the system's range would
    sooner or later call from that very port, reach itself, and keep the port.
    """
    while True:
        port = random.randrange(_LOWEST, _HIGHEST)
        if port in taken or port + 1 in taken:
            continue
        with socket.socket() as sock, socket.socket() as after, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            after.bind(("127.0.0.1", port + 1))
            return port


def why_taken(port: int) -> str | None:
    """Return why nothing can listen on a port, None if something can."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError as error:
            return error.strerror
    return None
