"""Where clients connect to, and the sockets they do it with."""

import socket
import sys
from dataclasses import dataclass
from ipaddress import ip_address


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway's public address; ``token`` is what it is shown, if it asks for one."""

    host: str
    port: int
    token: str | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine by a number, so that any loopback address may
        connect to it.
        """
        try:
            return ip_address(self.host).is_loopback and ":" not in self.host
        except ValueError:
            return False


def create_socket(
    target: Target, address: str | None, buffer_bytes: int | None
) -> socket.socket:
    """Return a socket that is not connected yet, for one client.

    ``address`` is the loopback address that it connects from, where that can be;
    ``buffer_bytes`` how much the kernel may receive before the client reads.
    """
    family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
    created = socket.socket(family, socket.SOCK_STREAM)
    created.setblocking(False)
    try:
        created.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if buffer_bytes is not None:
            # Before connecting: the window is agreed on with the first packet.
            created.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        # Elsewhere only 127.0.0.1 is there without being set up.
        if address is not None and target.is_loopback and sys.platform == "linux":
            created.bind((address, 0))
    except OSError:
        created.close()
        raise
    return created
