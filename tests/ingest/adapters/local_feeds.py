"""Adapters that a command can be given by name: of exchanges on this machine."""

import os
from collections.abc import Iterable, Iterator

from ingest.adapters.adapter import (
    ExchangeInstrument,
    Fetch,
    Frame,
    InstrumentDay,
    Piece,
)
from ingest.exchanges.binance import Binance


class Local(Binance):
    """Binance, at the address that a variable names, with a list and a close."""

    url = os.environ.get("LOCAL_EXCHANGE", "ws://127.0.0.1:9")

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeInstrument]:
        """Return two symbols, one of which it chooses."""
        names: Iterable[str] = ("BTCUSDT", "ETHBTC")
        return [ExchangeInstrument(name, f"{name} by name", name) for name in names]

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Say a previous close with every trade."""
        yield from super().decode(frame)
        yield InstrumentDay("BTCUSDT", prev_close="70000.5")


class Away(Binance):
    """Nobody listens there."""

    rest_url = "http://127.0.0.1:9"
