"""Adapters that a command can be given by name: of exchanges on this machine."""

import os
from collections.abc import Iterable

from ingest.adapters.adapter import ExchangeIssue, Fetch
from ingest.exchanges.binance import Binance


class Local(Binance):
    """Binance, at the address that a variable names, with a list of its own."""

    url = os.environ.get("LOCAL_EXCHANGE", "ws://127.0.0.1:9")

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeIssue]:
        """Return two symbols, one of which it chooses."""
        names: Iterable[str] = ("BTCUSDT", "ETHBTC")
        return [ExchangeIssue(name, f"{name} by name", name) for name in names]


class Away(Binance):
    """Nobody listens there."""

    rest_url = "http://127.0.0.1:9"
