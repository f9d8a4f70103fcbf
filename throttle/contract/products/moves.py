"""What a move is: a price that went far within a few seconds. Pure.

This module is a contract: the analytics job writes moves, gateways read them. Every
trade is compared with those of its instrument in the span (``move_span_ms``) that ends
with it: a sliding window of the exchange's clock. It is told once, when the log's clock
has passed the trade that completes it.
"""

from dataclasses import dataclass
from decimal import Decimal

import orjson

from throttle.contract.bars import number, text
from throttle.contract.products.movers import change_percent


@dataclass(frozen=True, slots=True)
class Move:
    """A price that went from ``before`` to ``after`` within the span.

    ``start_us`` and ``end_us`` are the times of the two trades, microseconds since
    1970; ``seq`` is the number of the second one, which completed the move. Of a rise
    ``before`` is the lowest price of the span that ends with it, and the first trade is
    the latest at that price; of a fall it is the highest.
    """

    isin: str
    start_us: int
    end_us: int
    seq: int
    before: Decimal
    after: Decimal

    def encode(self) -> bytes:
        """Encode as the field ``move`` of the stream ``AnalyticsKeys.moves``."""
        places = f"{self.isin} {self.start_us} {self.end_us} {self.seq}"
        return f"{places} {text(self.before)} {text(self.after)}".encode()

    @classmethod
    def decode(cls, line: bytes) -> "Move":
        """Decode what ``encode`` wrote. Raises ValueError."""
        try:
            isin, start, end, seq, before, after = line.decode().split(" ")
            prices = Decimal(before), Decimal(after)
        except ArithmeticError as error:
            raise ValueError(f"move {line!r}: {error!r}") from None
        return cls(isin, int(start), int(end), int(seq), *prices)

    def body(self) -> bytes:
        """Return the JSON object that clients get."""
        fields = {
            "isin": self.isin,
            "start": self.start_us,
            "end": self.end_us,
            "seq": self.seq,
            "from": number(self.before),
            "to": number(self.after),
            "percent": number(change_percent(self.before, self.after)),
        }
        return orjson.dumps(fields)
