"""A client of tickthrottle for scripts: follows its stream, appends to its trade log.

Nothing is loaded before it is asked for: who only appends needs no websockets, and the
product itself takes no more of this package than its contracts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tickthrottle_client.bar_book import Bar as Bar
    from tickthrottle_client.blocking_client import (
        BlockingTickClient as BlockingTickClient,
    )
    from tickthrottle_client.chain_v1 import Verdict as Verdict
    from tickthrottle_client.item_sums import Traded as Traded
    from tickthrottle_client.item_sums import day_after as day_after
    from tickthrottle_client.item_sums import sums_of as sums_of
    from tickthrottle_client.item_sums import traded as traded
    from tickthrottle_client.key_v1 import BadSymbol as BadSymbol
    from tickthrottle_client.key_v1 import key_of as key_of
    from tickthrottle_client.log_v1 import LogAway as LogAway
    from tickthrottle_client.log_v1 import LogError as LogError
    from tickthrottle_client.log_v1 import LogUnusable as LogUnusable
    from tickthrottle_client.producer import NotAppended as NotAppended
    from tickthrottle_client.producer import TradeProducer as TradeProducer
    from tickthrottle_client.rest_client import Records as Records
    from tickthrottle_client.rest_client import RestClient as RestClient
    from tickthrottle_client.rest_client import RestError as RestError
    from tickthrottle_client.status_book import InstrumentStatus as InstrumentStatus
    from tickthrottle_client.tick_client import Item as Item
    from tickthrottle_client.tick_client import State as State
    from tickthrottle_client.tick_client import TickClient as TickClient
    from tickthrottle_client.tick_client import TickError as TickError
    from tickthrottle_client.tick_client import Token as Token
    from tickthrottle_client.trade_book import TradeEntry as TradeEntry
    from tickthrottle_client.trade_v1 import InvalidTrade as InvalidTrade

_HOMES = {
    "bar_book": ("Bar",),
    "blocking_client": ("BlockingTickClient",),
    "chain_v1": ("Verdict",),
    "item_sums": ("Traded", "day_after", "sums_of", "traded"),
    "key_v1": ("BadSymbol", "key_of"),
    "log_v1": ("LogAway", "LogError", "LogUnusable"),
    "producer": ("NotAppended", "TradeProducer"),
    "rest_client": ("Records", "RestClient", "RestError"),
    "status_book": ("InstrumentStatus",),
    "tick_client": ("Item", "State", "TickClient", "TickError", "Token"),
    "trade_book": ("TradeEntry",),
    "trade_v1": ("InvalidTrade",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
