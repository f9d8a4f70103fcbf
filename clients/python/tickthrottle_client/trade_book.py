"""Every trade of some instruments: who listens, and what was missed. Pure."""

from typing import Any, TypeAlias

from tickthrottle_client.listeners import Listeners
from tickthrottle_client.tick_v1 import TRADES, read_decimal
from tickthrottle_client.trade_v1 import LATEST_TIME_US

TradeEntry: TypeAlias = dict[str, Any]
"""An entry of the trade log: a trade with all its fields, price and size as Decimal, or
what takes one back (``cancels``), which has neither.

``window`` is the end of the window that it was appended in, milliseconds since 1970.
``number`` goes up by one from entry to entry of an instrument. ``missed`` is how many
entries are missing before this one: 0 but where the reader was too slow, None where
nobody knows, as after a lost connection.
"""


def read_entry(entry: TradeEntry) -> None:
    """Turn decimals of an entry into Decimal. Raises any Exception for a bad one."""
    for name in ("price", "size"):
        if name in entry:
            entry[name] = read_decimal(entry[name])
    numbers = entry["time"], entry["window"]
    if {*map(type, numbers)} != {int} or not 0 <= entry["time"] <= LATEST_TIME_US:
        raise ValueError("an entry must have a time and a window")


class TradeBook(Listeners):
    """Knows who listens to the trades of which instrument, by the keys as given."""

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, str] = {}
        self._begun: set[str] = set()
        self._lost: set[str] = set()

    def name(self, codes: dict[str, str]) -> None:
        """Take in what keys with codes stand for."""
        self._given |= {key: text for text, key in codes.items()}

    def lose(self) -> None:
        """Take in that the connection is lost: what comes next is not what follows."""
        self._lost |= self._begun

    def take(self, message: dict[str, Any]) -> None:
        """Give the entries of a message to those who listen."""
        isin = message["isin"]
        missed = None if isin in self._lost else message["missed"]
        self._lost.discard(isin)
        self._begun.add(isin)
        key = TRADES + isin
        for number, entry in enumerate(message["entries"], message["number"]):
            entry |= {"number": number, "missed": missed}
            missed = 0
            self.tell((key, self._given.get(key, "")), entry)
