"""Trades that a test appends at moments that it chooses."""

from abc import ABC, abstractmethod
from typing import Any

from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from tickthrottle_client.taking_back_v1 import CANCELS


class TradesByHand(ABC):
    """A trade log with a clock turned by hand.

    Moments are milliseconds since ``start_ms``, which is since 1970.
    """

    def __init__(self, start_ms: int) -> None:
        self._start_ms = start_ms

    @property
    @abstractmethod
    def partitions(self) -> int:
        """How many partitions the log has."""

    def trade(
        self,
        isin: str,
        price: str,
        *,
        at_ms: int,
        time_ms: int | None = None,
        seq: int = 0,
        size: str = "1",
        partition: int | None = None,
        **extra: Any,
    ) -> int:
        """Append a trade at a moment; return its position.

        ``time_ms`` is the exchange's time, ``at_ms`` unless given; ``partition`` the
        instrument's own unless given. In a partition, moments must not go back.
        """
        time_us = (self._start_ms + (at_ms if time_ms is None else time_ms)) * 1_000
        payload = Trade(isin, time_us, seq, price, size, extra).to_wire()
        if partition is None:
            partition = partition_of(isin, self.partitions)
        return self.payload(payload, at_ms=at_ms, partition=partition)

    def cancel(
        self, isin: str, seq: int, *, at_ms: int, partition: int | None = None
    ) -> int:
        """Append an entry that takes the trade ``seq`` back; return its position."""
        fields = {"isin": isin, "time": (self._start_ms + at_ms) * 1_000}
        payload = Trade.from_fields({**fields, CANCELS: seq}).to_wire()
        if partition is None:
            partition = partition_of(isin, self.partitions)
        return self.payload(payload, at_ms=at_ms, partition=partition)

    @abstractmethod
    def payload(self, payload: bytes, *, at_ms: int, partition: int = 0) -> int:
        """Append any bytes at a moment, malformed ones too; return the position."""
