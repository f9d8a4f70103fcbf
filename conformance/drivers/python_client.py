"""Drives ``tickthrottle_client`` for the conformance kit; ``blocking`` its second form.

The form of the lines is in docs/conformance.md.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

from tickthrottle_client import (
    BlockingTickClient,
    TickClient,
    TickError,
    Verdict,
    traded,
)

SAYS = (
    *("items", "groups", "bars", "trades", "statuses", "sums", "members"),
    *("position", "rejected", "resets", "bars_missed", "days", "chain", "status_news"),
)


def plain(value: Any) -> Any:
    """Return what JSON has no form for as text."""
    return format(value, "f") if isinstance(value, Decimal) else list(value)


class Held:
    """What one client holds, by its own words."""

    def __init__(self) -> None:
        self.client: Any = None
        self.comes_back = True
        self.counts = {"messages": 0, "resets": 0, "bars_missed": 0}
        self.bars: dict[str, dict[int, Any]] = {}
        self.trades: dict[str, list[Any]] = {}
        self.sums: dict[str, Any] = {}
        self.status_news: dict[str, list[Any]] = {}
        self.chain: dict[str, Any] | None = None
        self.rejected: dict[str, str] = {}
        self.ends: dict[str, Callable[[], None]] = {}
        self._tokens: list[str] = []

    def make(self, kind: Any, order: dict[str, Any]) -> Any:
        names = ("min_interval_ms", "fields", "verify")
        options: dict[str, Any] = {n: order[n] for n in names if n in order}
        if "tokens" in order:
            self._tokens = list(order["tokens"])
            options["token"] = self._token
        self.client = kind(
            order["url"],
            waits=True,
            on_state=self._state,
            on_message=lambda _: self._count("messages"),
            on_reset=lambda: self._count("resets"),
            on_bars_missed=lambda: self._count("bars_missed"),
            on_rejected=self._reject,
            on_nothing=lambda _: None,
            on_status=self._status,
            on_chain=self._verdict,
            **options,
        )
        return self.client

    async def _token(self) -> str:
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]

    def _state(self, state: str, _: str) -> None:
        self.comes_back = state != "closed"

    def _count(self, name: str) -> None:
        self.counts[name] += 1

    def _reject(self, rejected: list[dict[str, str]]) -> None:
        self.rejected |= {one["key"]: one["code"] for one in rejected}

    def follow(self, keys: list[str], last: int = 1) -> None:
        """Have the client follow keys of any kind."""
        items = [key for key in keys if not key.startswith(("bars:", "trades:"))]
        if items:
            self.ends |= dict.fromkeys(items, self.client.subscribe(items, self._item))
        for key in keys:
            kind, _, rest = key.partition(":")
            if kind == "bars":
                interval, _, name = rest.partition(":")
                self.ends[key] = self.client.bars(interval, name, self._bar, last=last)
            elif kind == "trades":
                self.ends[key] = self.client.trades(rest, self._trade)

    def _item(self, item: dict[str, Any]) -> None:
        if item.get("trades") and "isin" in item:
            more, before = traded(item), self.sums.get(item["isin"])
            known = more if before is None or more is None else before.fold(more)
            self.sums[item["isin"]] = known

    def _bar(self, bar: dict[str, Any]) -> None:
        name = f"{bar['interval']}:{bar['isin']}"
        self.bars.setdefault(name, {})[bar["start"]] = bar

    def _status(self, status: dict[str, Any]) -> None:
        self.status_news.setdefault(status["isin"], []).append(dict(status))

    def _verdict(self, verdict: Verdict) -> None:
        said = verdict._asdict()
        self.chain = {n: said[n] for n in ("state", "epoch", "offset")}
        self.chain["rows"] = verdict.has_rows

    def _trade(self, entry: dict[str, Any]) -> None:
        self.trades.setdefault(entry["isin"], []).append(entry)

    def report(self) -> dict[str, Any]:
        names = ("trades", "volume", "value", "high", "low")
        client = self.client
        return {
            **self.counts,
            "comes_back": self.comes_back,
            "items": client.items,
            "groups": client.groups,
            "members": client.members,
            "statuses": client.statuses,
            "position": client.position,
            "bars": {n: [b[k] for k in sorted(b)] for n, b in self.bars.items()},
            "trades": self.trades,
            "status_news": self.status_news,
            "chain": self.chain,
            "rejected": self.rejected,
            "sums": {
                isin: sums and {name: getattr(sums, name) for name in names}
                for isin, sums in self.sums.items()
            },
        }


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, default=plain) + "\n")
    sys.stdout.flush()


def hello(name: str) -> None:
    takes = ("min_interval_ms", "fields", "tokens", "verify")
    say({"client": name, "says": SAYS, "takes": takes})


async def drive() -> None:
    """Drive the client for asyncio, until the input ends."""
    loop, orders = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(orders.put_nowait, line)
        loop.call_soon_threadsafe(orders.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    hello("tickthrottle_client")
    held, task = Held(), None

    async def run(order: dict[str, Any]) -> None:
        with suppress(TickError):
            async with held.make(TickClient, order):
                held.follow(order["keys"], order.get("last", 1))
                await asyncio.Event().wait()

    while line := await orders.get():
        order = json.loads(line)
        if order["do"] in ("follow", "end") and task is not None:
            task.cancel()
            await asyncio.wait([task])
            task = None
        if order["do"] == "follow":
            held = Held()
            task = asyncio.create_task(run(order))
            await asyncio.sleep(0)
        else:
            obey(held, order)


def obey(held: Held, order: dict[str, Any]) -> None:
    """Do what is the same for both forms."""
    if order["do"] == "report":
        say(held.report())
    elif order["do"] == "also":
        held.follow(order["keys"], order.get("last", 1))
    elif order["do"] == "unfollow":
        for key in order["keys"]:
            held.ends.pop(key)()


def drive_blocking() -> None:
    """Drive the client that blocks, until the input ends."""
    hello("tickthrottle_client, blocking")
    held = Held()
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] in ("follow", "end") and held.client is not None:
            with suppress(TickError):
                held.client.__exit__(None, None, None)
            held.client = None
        # A server may close for good before anything was asked for.
        with suppress(TickError):
            if order["do"] == "follow":
                held = Held()
                held.make(BlockingTickClient, order).__enter__()
                held.follow(order["keys"], order.get("last", 1))
            else:
                obey(held, order)


if __name__ == "__main__":
    if sys.argv[1:] == ["blocking"]:
        drive_blocking()
    else:
        asyncio.run(drive())
