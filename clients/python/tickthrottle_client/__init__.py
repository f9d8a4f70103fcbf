"""A client of tickthrottle for scripts: follows its stream, appends to its trade log.

Nothing is loaded before it is asked for: who only appends needs no websockets, and the
product itself takes no more of this package than its contracts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tickthrottle_client.bar_book import Bar
    from tickthrottle_client.blocking_client import BlockingTickClient
    from tickthrottle_client.item_sums import Traded, day_after, sums_of, traded
    from tickthrottle_client.key_v1 import BadSymbol, key_of
    from tickthrottle_client.log_v1 import LogAway, LogError, LogUnusable
    from tickthrottle_client.past_records import Records
    from tickthrottle_client.producer import NotAppended, TradeProducer
    from tickthrottle_client.rest_client import RestClient, RestError
    from tickthrottle_client.tick_client import (
        Item,
        State,
        TickClient,
        TickError,
        Token,
    )
    from tickthrottle_client.trade_book import TradeEntry
    from tickthrottle_client.trade_v1 import InvalidTrade

__all__ = [
    "BadSymbol",
    "Bar",
    "BlockingTickClient",
    "InvalidTrade",
    "Item",
    "LogAway",
    "LogError",
    "LogUnusable",
    "NotAppended",
    "Records",
    "RestClient",
    "RestError",
    "State",
    "TickClient",
    "TickError",
    "Token",
    "TradeEntry",
    "TradeProducer",
    "Traded",
    "day_after",
    "key_of",
    "sums_of",
    "traded",
]

_HOMES = {
    "bar_book": ("Bar",),
    "blocking_client": ("BlockingTickClient",),
    "past_records": ("Records",),
    "rest_client": ("RestClient", "RestError"),
    "tick_client": ("Item", "State", "TickClient", "TickError", "Token"),
    "producer": ("NotAppended", "TradeProducer"),
    "key_v1": ("BadSymbol", "key_of"),
    "log_v1": ("LogAway", "LogError", "LogUnusable"),
    "trade_v1": ("InvalidTrade",),
    "item_sums": ("Traded", "day_after", "sums_of", "traded"),
    "trade_book": ("TradeEntry",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
