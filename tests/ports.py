"""Free ports for tests: two tests that run at a time never get the same one.

Between `free_port` and the server that listens there, anybody may take a port: the
other worker, or the next call. So each worker has ports of its own, and goes through
them in turn. They are above those that the product chooses from by itself, and below
those that the system hands out.
"""

import itertools
import os
import random
import socket
from contextlib import suppress

_LOWEST, _HIGHEST = 30_000, 32_760
_WORKERS = 8
_SHARE = (_HIGHEST - _LOWEST) // _WORKERS
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST = _LOWEST + _WORKER % _WORKERS * _SHARE
# Not always from the first one on: another run of tests may have just ended.
_PLACES = itertools.count(random.randrange(_SHARE))


def free_port() -> int:
    """Return a port of loopback that is free, and so is the one after it.

    A gateway takes two.
    """
    while True:
        port = _FIRST + next(_PLACES) * 2 % _SHARE
        with socket.socket() as sock, socket.socket() as after, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            after.bind(("127.0.0.1", port + 1))
            return port
