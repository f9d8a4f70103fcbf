"""Frames as the exchanges' documentation has them, made for given trades."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

T0_MS = 1_773_964_800_000
"""2026-03-20T00:00:00Z."""


@dataclass(frozen=True)
class Deal:
    """One trade that an exchange tells, in its own words for prices."""

    symbol: str
    number: int
    price: str = "71900"
    size: str = "2.5"
    time_ms: int = T0_MS
    buys: bool = True


def deals(symbol: str, numbers: Sequence[int], **changes: Any) -> list[Deal]:
    """Return trades with these numbers, each a millisecond after the one before."""
    return [
        replace(Deal(symbol, n, time_ms=T0_MS + n % 1_000_000), **changes)
        for n in numbers
    ]


def upbit(deal: Deal, stream: str = "REALTIME", *, simple: bool = True) -> bytes:
    """Return a frame of Upbit, as bytes, which is how it sends them."""
    side = "BID" if deal.buys else "ASK"
    names = ("type", "code", "timestamp", "trade_date", "trade_time")
    more = ("trade_timestamp", "trade_price", "trade_volume", "ask_bid")
    last = ("prev_closing_price", "change", "change_price", "sequential_id")
    end = ("stream_type", "best_ask_price")
    if simple:
        names, more = ("ty", "cd", "tms", "td", "ttm"), ("ttms", "tp", "tv", "ab")
        last, end = ("pcp", "c", "cp", "sid"), ("st", "bap")
    values = (
        *('"trade"', f'"{deal.symbol}"', str(deal.time_ms + 3)),
        *('"2026-03-20"', '"00:00:00"', str(deal.time_ms), deal.price, deal.size),
        *(f'"{side}"', "70000.0", '"RISE"', "1900.0", str(deal.number)),
        *(f'"{stream}"', "72000.0"),
    )
    keys = (*names, *more, *last, *end)
    pairs = (f'"{k}":{v}' for k, v in zip(keys, values, strict=True))
    return ("{" + ",".join(pairs) + "}").encode()


def binance(deal: Deal) -> str:
    """Return an event of a combined stream of Binance."""
    event = {
        "e": "trade",
        "E": deal.time_ms + 2,
        "s": deal.symbol,
        "t": deal.number,
        "p": deal.price,
        "q": deal.size,
        "T": deal.time_ms,
        "m": not deal.buys,
        "M": True,
    }
    return json.dumps({"stream": f"{deal.symbol.lower()}@trade", "data": event})


def alpaca(*many: Deal, exchange: str = "D") -> str:
    """Return a message of Alpaca with trades."""
    rows = []
    for deal in many:
        seconds, millis = divmod(deal.time_ms - T0_MS, 1000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        stamp = f"2026-03-20T{hour:02}:{minute:02}:{second:02}.{millis:03}456789Z"
        rows.append(
            f'{{"T":"t","S":"{deal.symbol}","i":{deal.number},"x":"{exchange}",'
            f'"p":{deal.price},"s":{deal.size},"t":"{stamp}","c":["@","I"],"z":"C"}}'
        )
    return "[" + ",".join(rows) + "]"


def kis_fields(
    deal: Deal, volume: int, *, hour: str = "094751", date: str = "20250730"
) -> list[str]:
    """Return the 46 fields of a trade; ``volume`` is the day's up to and with it."""
    fields = ["0"] * 46
    fields[0], fields[1], fields[2] = deal.symbol, hour, deal.price
    fields[12], fields[13], fields[14] = deal.size, str(volume), "595403999350"
    fields[21] = "1" if deal.buys else "5"
    fields[33], fields[34], fields[43] = date, "20", "0"
    return fields


def kis(*rows: Sequence[str], channel: str = "H0STCNT0") -> str:
    body = "^".join("^".join(row) for row in rows)
    return f"0|{channel}|{len(rows):03}|{body}"
