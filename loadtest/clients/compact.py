"""Clients whose rows come by position, as those of our own clients do."""

import json
from collections.abc import Sequence
from typing import Any

from loadtest.client_mix import Member
from loadtest.clients.client_loop import ClientLoop
from loadtest.clients.sockets import SocketClient
from loadtest.clients.targets import Target
from loadtest.judge.rows import ExactNumber, Frame, Item, to_item
from tickthrottle_client.row_positions import EVERY, RowPositions


class CompactClient(SocketClient):
    """Asks for all fields. Numbers of instruments are its connection's own."""

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self._positions = RowPositions()

    def asks(self) -> dict[str, Any]:
        """Ask for rows by position; what was said of them before is void."""
        self._positions = RowPositions()
        return {"fields": [EVERY]}

    def read(self, payload: bytes) -> tuple[Frame, Sequence[Item]]:
        """Return a frame and the items that its rows stand for."""
        frame = json.loads(payload, parse_float=ExactNumber)
        self._positions.take(frame)
        return frame, [to_item(item) for item in frame.get("data", ())]
