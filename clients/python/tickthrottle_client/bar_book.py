"""Which bars a client follows and what it knows of them. Pure.

Of two states of a bar the one of the greater revision is newer, of equal ones the one
with more trades, then that which is closed: between two revisions a bar only gains
trades.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from tickthrottle_client.listeners import Listener, Listeners
from tickthrottle_client.tick_v1 import ALL, BARS, is_instrument, read_decimal

Bar: TypeAlias = dict[str, Any]
"""A bar; its prices and sums are Decimal, with every digit, or None."""

DECIMALS = ("open", "high", "low", "close", "volume", "value", "vwap")

MOST_KNOWN = 512
"""So many bars of an instrument and interval are remembered: the newest ones."""


def read_bar(bar: Bar) -> Bar:
    """Turn the numbers of a bar that are decimals into such."""
    for name in DECIMALS:
        if bar[name] is not None:
            bar[name] = read_decimal(bar[name])
    return bar


class BarBook(Listeners):
    """The keys of bars and who listens to them, by ``bars:<interval>:<instrument>``.

    ``position`` is up to where every bar has arrived. Who asks for keys sets it to None
    until their snapshot is there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.position: dict[str, Any] | None = None
        # Keys that were asked for by a code, and what the gateway calls them.
        self._names: dict[str, str] = {}
        self._codes: dict[str, str] = {}
        self._known: dict[tuple[str, str], dict[int, Bar]] = {}
        self._epoch: str | None = None
        self._last: dict[str, int] = {}

    @property
    def has_bars(self) -> bool:
        return bool(self._known)

    def wanted(self, keys: Iterable[str]) -> dict[int, list[str]]:
        """Return which of some keys are listened to, by how many bars of each."""
        by_last: dict[int, list[str]] = {}
        for key in keys:
            if key in self._last:
                by_last.setdefault(self._last[key], []).append(key)
        return by_last

    def add(self, keys: Iterable[str], listener: Listener, last: int = 1) -> list[str]:
        """Have somebody listen; return the keys that have to be asked for."""
        keys = list(keys)
        new = super().add(keys, listener)
        for key in keys:
            self._last[key] = max(last, self._last.get(key, 1))
        return new

    def remove(self, keys: Iterable[str], listener: Listener) -> list[str]:
        """Have somebody listen no longer; return the keys that nobody listens to."""
        dropped = super().remove(keys, listener)
        for key in dropped:
            del self._last[key]
        for interval, isin in tuple(self._known):
            if not self._names_of(interval, isin):
                del self._known[interval, isin]
        return dropped

    def name(self, codes: dict[str, str]) -> None:
        """Take in what keys by a code are called, as the gateway has told."""
        names = {k: v for k, v in codes.items() if k.startswith(BARS)}
        self._names |= names
        self._codes |= {name: key for key, name in names.items()}

    def take(self, message: dict[str, Any], *, is_waiting: bool) -> None:
        """Take in a message of bars and tell who listens.

        ``is_waiting``: further keys were asked for and are not answered yet.
        """
        is_snapshot = message.get("snapshot", False)
        is_other = message["epoch"] != self._epoch
        self._epoch = message["epoch"]
        for bar in message["bars"]:
            self._put(bar, is_forced=is_other and is_snapshot)
        if message["epoch"] is None or is_waiting or not message.get("final", True):
            return
        self.position = {name: message[name] for name in ("epoch", "sequence")}

    def _put(self, bar: Bar, *, is_forced: bool) -> None:
        interval, isin = bar["interval"], bar["isin"]
        names = self._names_of(interval, isin)
        if not names:
            return
        known = self._known.setdefault((interval, isin), {})
        before = known.get(bar["start"])
        if before is not None and not is_forced and _order(bar) < _order(before):
            return
        known[bar["start"]] = bar
        if len(known) > MOST_KNOWN:
            del known[min(known)]
        self.tell(names, bar)

    def _names_of(self, interval: str, isin: str) -> list[str]:
        """Return the keys by which somebody listens to an instrument's bars."""
        key = f"{BARS}{interval}:{isin}"
        names = [key, self._codes.get(key, "")]
        if is_instrument(isin):
            names.append(f"{BARS}{interval}:{ALL}")
        return [name for name in names if name in self]

    def known(self, keys: Iterable[str]) -> list[Bar]:
        """Return what is known of keys, for whoever comes later."""
        return [bar for key in keys for bar in self._bars_of(key)]

    def _bars_of(self, key: str) -> Iterator[Bar]:
        name = self._names.get(key, key)
        interval, _, isin = name.removeprefix(BARS).partition(":")
        for (known_interval, known_isin), bars in self._known.items():
            is_of_all = isin == ALL and is_instrument(known_isin)
            if known_interval == interval and (is_of_all or isin == known_isin):
                yield from (bars[start] for start in sorted(bars))


def _order(bar: Bar) -> tuple[int, int, bool]:
    return bar["revision"], bar["trades"], bar["closed"]
