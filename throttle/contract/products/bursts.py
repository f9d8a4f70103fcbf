"""What a burst is: an instrument's trades that follow without a pause. Pure.

This module is a contract: the analytics job writes bursts, gateways read them. A burst
is a session window of the exchange's clock: it ends when for a gap (``burst_gap_ms``)
nothing was traded, and is told once, when the log's clock has passed that.
"""

from dataclasses import dataclass

import orjson

from throttle.contract.bars import Bar, number
from throttle.contract.products.movers import change_of


@dataclass(frozen=True, slots=True)
class TradingBurst:
    """A burst that has ended: its ``bar`` goes from its first to its last trade.

    Start and end are the whole milliseconds in which those were made.
    """

    bar: Bar

    def encode(self) -> bytes:
        """Encode as the field ``burst`` of the stream ``AnalyticsKeys.bursts``."""
        return b"%b %b" % (self.bar.isin.encode(), self.bar.encode())

    @classmethod
    def decode(cls, line: bytes) -> "TradingBurst":
        """Decode what ``encode`` wrote. Raises ValueError."""
        isin, _, bar = line.partition(b" ")
        return cls(Bar.decode(isin.decode(), bar))

    def body(self) -> bytes:
        """Return the JSON object clients get: that of a bar, and how the price went."""
        fields = dict(self.bar.to_object())
        del fields["closed"], fields["revision"]
        how = change_of(self.bar)
        fields["percent"] = number(how[1] if how else None)
        return orjson.dumps(fields)
