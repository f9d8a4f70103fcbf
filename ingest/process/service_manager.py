"""Tells the service manager that a process is ready, as ``sd_notify`` does."""

import os
import socket
from contextlib import suppress

_VARIABLE = "NOTIFY_SOCKET"


def tell_ready() -> None:
    """Say that this process does what it was started for; does nothing elsewhere.

    Whoever started the process named a socket in its environment if it waits for this.
    Telling it again changes nothing, and a manager that does not listen is no fault.
    """
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    # A name that begins with @ is of Linux's abstract namespace.
    path = "\0" + address[1:] if address[0] == "@" else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.sendto(b"READY=1", path)
