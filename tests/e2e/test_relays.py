"""A tree of gateways, three levels of processes, any of which may die."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import redis
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.conftest import eventually
from tests.e2e.gateway_node import GatewayNode
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

ISINS = make_isins(5)


class Client(Thread):
    """Follows everything at one of some ports; checks each frame."""

    def __init__(self, ports: list[int]) -> None:
        super().__init__(daemon=True)
        self.problems: list[str] = []
        self.offset, self.connections = 0, 0
        self.seqs: dict[str, int] = {}
        self._epoch: str | None = None
        self._ports, self._ends = ports, Event()

    def run(self) -> None:
        for port in cycle(self._ports):
            if self._ends.is_set():
                return
            with suppress(OSError, WebSocketException):
                self._follow(port)
            self._ends.wait(0.2)

    def close(self) -> None:
        self._ends.set()
        self.join(30)

    def _follow(self, port: int) -> None:
        with connect(f"ws://127.0.0.1:{port}/v1/stream", compression=None) as line:
            wish: dict[str, Any] = {"op": "subscribe", "keys": ["*"]}
            if self._epoch is not None:
                wish["since"] = {"epoch": self._epoch, "offset": self.offset}
            line.send(json.dumps(wish))
            self.connections += 1
            here = None
            while not self._ends.is_set():
                frame = json.loads(line.recv(timeout=20))
                if frame.get("epoch") is None or "offset" not in frame:
                    continue
                self._epoch = frame["epoch"]
                if frame["type"] == "snapshot":
                    here = frame["offset"] if frame["final"] else here
                elif frame["type"] == "update":
                    windows = frame.get("merged", 1)
                    if here is None or here + windows != frame["offset"]:
                        self.problems.append(f"{here}, then {frame['offset']}")
                    here = frame["offset"]
                self._take(frame.get("data", ()), frame["offset"])

    def _take(self, items: Any, offset: int) -> None:
        for item in items:
            before = self.seqs.get(item["isin"], 0)
            # A relay that is behind tells again what this client has from another.
            if item["seq"] < before and offset > self.offset:
                self.problems.append(f"{item['isin']} went back at {offset}")
            self.seqs[item["isin"]] = max(before, item["seq"])
        self.offset = max(self.offset, offset)


@contextmanager
def following(*trees: list[GatewayNode]) -> Iterator[list[Client]]:
    """Have clients follow: each its own node first, then the others beside it."""
    clients = []
    for nodes in trees:
        ports = [node.port for node in nodes]
        clients += [Client(ports[n:] + ports[:n]) for n in range(len(ports))]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def test_a_tree_of_relays_loses_and_repeats_no_window(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """The gateway, a relay in the middle and one at the leaves die, one by one."""
    publisher = Publisher(client)
    with ExitStack() as stack:
        root = GatewayNode(stack, tmp_path, REDIS_URL=redis_url)
        middle = [
            GatewayNode(stack, tmp_path, TICKTHROTTLE_FOLLOW=root.url) for _ in "12"
        ]
        leaves = [
            GatewayNode(stack, tmp_path, TICKTHROTTLE_FOLLOW=node.url)
            for node in middle
            for _ in "12"
        ]
        publisher.publish()
        for node in (root, *middle, *leaves):
            node.begin()
            eventually(node.is_live, 60)
        clients = stack.enter_context(following([root, *middle], leaves))

        def publish(windows: int = 5) -> None:
            for _ in range(windows):
                rows = (make_row(isin, seq=publisher.offset + 1) for isin in ISINS)
                publisher.publish(*rows)

        def all_have_it() -> bool:
            return all(c.offset == publisher.offset for c in clients)

        def check(step: Callable[[], object]) -> None:
            step()
            publish()
            eventually(all_have_it, 60)

        check(publish)
        for node in (middle[0], leaves[1], root):
            node.kill()
            publish()
            check(node.begin)
        assert [client.problems for client in clients] == [[]] * len(clients)
        last = dict.fromkeys(ISINS, publisher.offset)
        assert all(client.seqs == last for client in clients)
