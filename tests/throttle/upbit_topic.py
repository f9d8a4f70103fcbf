"""A decoder, as docs/kafka.md shows it: what stands below is copied from there."""

import json

from tickthrottle_client import key_of

# Once for each symbol: "KRW-BTC" has the key QUCKRWBTC002.
KEYS = {symbol: key_of("QU", symbol) for symbol in ("KRW-BTC", "KRW-LAMB")}


def decode(value: bytes) -> object:
    # Text instead of floats: every digit stays.
    frames = json.loads(value, parse_float=str)
    if isinstance(frames, dict):
        frames = [frames]
    if frames[0]["ty"] != "trade":
        return frames[0]["ty"]  # "orderbook": counted under this name
    return [
        {
            "isin": KEYS[frame["cd"]],
            "time": frame["ttms"] * 1000,
            "seq": frame["sid"],
            "price": frame["tp"],
            "size": frame["tv"],
            "side": frame["ab"],
        }
        for frame in frames
    ]
