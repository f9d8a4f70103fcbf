"""A decoder, as docs/kafka.md shows it: what stands below is copied from there."""

import json

ISINS = {"KRW-BTC": "ZZ000KRWBTC3", "KRW-LAMB": "ZZ00KRWLAMB2"}


def decode(value: bytes) -> object:
    # Text instead of floats: every digit stays.
    frames = json.loads(value, parse_float=str)
    if isinstance(frames, dict):
        frames = [frames]
    if frames[0]["ty"] != "trade":
        return frames[0]["ty"]  # "orderbook": counted under this name
    return [
        {
            "isin": ISINS[frame["cd"]],
            "time": frame["ttms"] * 1000,
            "seq": frame["sid"],
            "price": frame["tp"],
            "size": frame["tv"],
            "side": frame["ab"],
        }
        for frame in frames
    ]
