"""A client that believes nothing: it checks every frame it gets."""

import json
import threading
from contextlib import ExitStack, suppress
from decimal import Decimal
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.conftest import eventually
from tests.e2e.processes import Running
from tests.oracle import EXACT, Sums

Version = tuple[int, int, int]

NOTHING = Sums(0, Decimal(0), Decimal(0), None, None)


def checker_at(port: int, gateway: Running) -> "Checker":
    """Return a client of everything at a gateway that was just started."""

    def connected() -> Checker | None:
        assert gateway.process.poll() is None, gateway.log()
        with suppress(OSError):
            return Checker(port)
        return None

    checker = eventually(connected, 20)
    assert checker is not None
    return checker


def version_of(item: dict[str, str]) -> Version:
    """Return what orders the items of a key: its revision, then the trade shown."""
    return int(item.get("revision", 0)), int(item["time"]), int(item["seq"])


def sums_of(item: dict[str, str]) -> Sums | None:
    """Return what an item says of all its trades; None if that is not known."""
    if "volume" in item:
        volume, value = (Decimal(item[name]) for name in ("volume", "value"))
        extremes = (item.get(name) for name in ("high", "low"))
        high, low = (None if text is None else Decimal(text) for text in extremes)
        return Sums(int(item["trades"]), volume, value, high, low)
    if item["trades"] == "1":
        return Sums.of_trade(item["price"], item["size"])
    return None


class Checker:
    """Subscribes to keys and checks the promises of ``tick.v1`` on every frame.

    ``board`` is what a page would show; ``sums`` is what the updates of a key add up
    to, if all of them say it; ``problems`` must stay empty.
    """

    def __init__(self, port: int, keys: str = "*") -> None:
        self.board: dict[str, dict[str, str]] = {}
        self.sums: dict[str, Sums | None] = {}
        self.updates = 0
        self.window = 0
        self.problems: list[str] = []
        self._versions: dict[str, Version] = {}
        self._updated: dict[str, str] = {}
        self._ahead: dict[str, Decimal] = {}
        self._offset = 0
        self._epochs: list[str] = []
        self._stack = ExitStack()
        url = f"ws://127.0.0.1:{port}/v1/stream?keys={keys}"
        self._socket = self._stack.enter_context(connect(url))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say goodbye."""
        self._stack.close()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            for text in self._socket:
                # As text: a price must come out as it went in.
                self._check(json.loads(text, parse_float=str, parse_int=str))
        except ConnectionClosed:
            pass
        except Exception as error:  # noqa: BLE001 - a thread's error must be seen
            self.problems.append(repr(error))

    def _check(self, frame: dict[str, Any]) -> None:
        if frame["type"] in ("error", "notice"):
            self.problems.append(str(frame))
        if frame["type"] not in ("snapshot", "update") or frame["epoch"] is None:
            return
        self._enter(frame["epoch"])
        offset = int(frame["offset"])
        if offset < self._offset:
            self.problems.append(f"offset {self._offset} then {offset}")
        self._offset = offset
        self.window = max(self.window, int(frame["window"]))
        isins = [item["isin"] for item in frame["data"]]
        if len(set(isins)) != len(isins):
            self.problems.append(f"a key twice at offset {offset}")
        if frame["type"] == "update":
            self._add_up(frame["data"], offset)
        for item in frame["data"]:
            self._take(item, offset)
        if frame["type"] == "update":
            again = [i for i in isins if self._updated.get(i) == frame["window"]]
            if again:
                self.problems.append(f"{again[0]} twice in a window, at {offset}")
            self._updated.update(dict.fromkeys(isins, frame["window"]))
            self.updates += 1

    def _enter(self, epoch: str) -> None:
        """Another epoch is another truth; one that is over does not come back."""
        if self._epochs[-1:] == [epoch]:
            return
        if epoch in self._epochs:
            self.problems.append(f"epoch {epoch} again, after {self._epochs[-1]}")
        self._epochs.append(epoch)
        self._versions.clear()
        self._updated.clear()
        self._ahead.clear()
        self.board.clear()
        self._offset = 0

    def _add_up(self, items: list[dict[str, str]], offset: int) -> None:
        for item in items:
            isin, sums = item["isin"], sums_of(item)
            before = self.sums.get(isin, NOTHING)
            together = None if sums is None or before is None else before.plus(sums)
            self.sums[isin] = together
            # Where trades count for the range alone, or not for it, this says nothing.
            if sums is None or sums.low is None or sums.high is None:
                continue
            least, most = (
                EXACT.multiply(p, sums.volume) for p in (sums.low, sums.high)
            )
            if not least <= sums.value <= most:
                self.problems.append(f"{isin} was not traded so at offset {offset}")
            # Where several jobs publish, a price may be of a row that is held back: the
            # next item stands for it.
            due = self._ahead.pop(isin, None)
            if due is not None and not sums.low <= due <= sums.high:
                self.problems.append(f"{isin} is out of its range at offset {offset}")
            version = version_of(item)
            known = self._versions.get(isin, (0, 0, 0))
            # What is shown after a trade was taken back may be of any window.
            is_news = version > known and version[0] == known[0]
            price = Decimal(item["price"])
            if is_news and not sums.low <= price <= sums.high:
                self._ahead[isin] = price

    def _take(self, item: dict[str, str], offset: int) -> None:
        version = version_of(item)
        known = self._versions.get(item["isin"])
        if known is not None and version < known:
            self.problems.append(f"{item['isin']} went back at offset {offset}")
        self._versions[item["isin"]] = version
        self.board[item["isin"]] = item
