"""A client that does not read."""

import json
import socket
from collections.abc import Iterator
from typing import Any

from tests.gateway.servers import Gateway, upgrade_request

END = -1
"""In place of an opcode: the connection has ended."""


class StalledReader:
    """A client on a bare socket with a small buffer that reads only when told."""

    def __init__(self, gateway: Gateway, keys: str) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.socket.settimeout(10)
        self.socket.connect((gateway.host, gateway.port))
        self.socket.sendall(upgrade_request(f"?keys={keys}"))
        self._file = self.socket.makefile("rb")
        while self._file.readline() != b"\r\n":
            pass

    def read(self) -> tuple[int, bytes]:
        """Return opcode and payload of the next frame, END when there is none."""
        first = self._file.read(1)
        if not first:
            return END, b""
        opcode = first[0] & 0x0F
        length = self._file.read(1)[0]
        if length >= 126:
            length = int.from_bytes(self._file.read(2 if length == 126 else 8))
        return opcode, self._file.read(length)

    def updates_until(self, offset: int) -> Iterator[dict[str, Any]]:
        """Read on, and return the updates up to the one with this offset."""
        while True:
            frame = json.loads(self.read()[1])
            if frame["type"] == "update":
                yield frame
                if frame["offset"] >= offset:
                    return

    def close(self) -> None:
        """Go without a word."""
        self._file.close()
        self.socket.close()
