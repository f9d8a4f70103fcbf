"""PURE: broken trades, one kind for every rule that can refuse one."""

from collections.abc import Callable
from random import Random

import orjson

from ingest.trade import LATEST_TIME_US, MAX_PAYLOAD_BYTES, REQUIRED

_YEAR_2099_US = 4_070_908_800_000_000


def break_trade(rng: Random, payload: bytes) -> bytes:
    """Return a broken copy of an encoded trade; every kind is as likely as another.

    Each is refused by ``Trade.from_wire``, but for a stamp in the year 2099, which
    only ``check_not_ahead`` refuses.
    """
    return rng.choice(_KINDS)(rng, payload)


def _empty(rng: Random, payload: bytes) -> bytes:
    return b""


def _truncated(rng: Random, payload: bytes) -> bytes:
    return payload[: rng.randrange(1, len(payload))]


def _not_utf8(rng: Random, payload: bytes) -> bytes:
    broken = payload.replace(b"KR7", b"\xc7\xd1\xff", 1)
    return b"\xff" + payload if broken == payload else broken


def _list(rng: Random, payload: bytes) -> bytes:
    return b"[" + payload + b"]"


def _too_large(rng: Random, payload: bytes) -> bytes:
    return payload[:-1] + b',"pad":"' + b"x" * MAX_PAYLOAD_BYTES + b'"}'


def _missing_field(rng: Random, payload: bytes) -> bytes:
    fields = orjson.loads(payload)
    del fields[rng.choice(REQUIRED)]
    return orjson.dumps(fields)


def _wrong_check_digit(rng: Random, payload: bytes) -> bytes:
    isin = orjson.loads(payload)["isin"]
    return _with("isin", f"{isin[:-1]}{(int(isin[-1]) + 1) % 10}")(rng, payload)


def _with(name: str, value: object) -> Callable[[Random, bytes], bytes]:
    def replace(rng: Random, payload: bytes) -> bytes:
        return orjson.dumps(orjson.loads(payload) | {name: value})

    return replace


_KINDS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _empty,
    _truncated,
    _not_utf8,
    _list,
    _too_large,
    _missing_field,
    _wrong_check_digit,
    _with("isin", "005930"),
    _with("time", 1_773_964_804),
    _with("time", LATEST_TIME_US),
    _with("time", _YEAR_2099_US),
    _with("seq", -1),
    _with("seq", 1.5),
    _with("price", "-100"),
    _with("price", "0"),
    _with("price", "n/a"),
    _with("price", "1e5"),
    _with("size", "0"),
    _with("size", True),
    _with("trades", 3),
    _with("depth", {"ask": 1}),
)
