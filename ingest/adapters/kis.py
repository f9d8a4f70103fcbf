"""Korea Investment & Securities (KIS): Korean stocks, with a key. Pure.

``H0STCNT0``, trades of KRX: text frames, ``0|H0STCNT0|003|`` and 46 fields a trade with
carets between them. No trade has a number, but each has the day's volume up to and with
it, which only grows; so a trade that comes again has a volume that was there before.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from json import dumps, loads
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    ExchangeTrade,
    Fetch,
    Frame,
    Limit,
    Numbering,
    Piece,
    Reconnect,
    Reply,
    Skip,
    Told,
    TurnedAway,
    read_json,
)
from ingest.trade import InvalidTrade
from tickthrottle_client.trade_v1 import isin_check_digit

TRADES = "H0STCNT0"
FIELDS = 46
MOST_TRADES_A_FRAME = 999

_CODE, _HOUR, _PRICE, _SIZE, _VOLUME, _VALUE, _SIDE = 0, 1, 2, 12, 13, 14, 21
_DATE, _SESSION, _EXPECTED = 33, 34, 43
_SIDES = {"1": "B", "5": "S"}
_SEOUL = timezone(timedelta(hours=9))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IN_USE = ("OPSP8996",)
_ALREADY = ("OPSP0002",)
_KEY = ("OPSP0011",)


class Kis(Adapter):
    """Trades of ``ws://ops.koreainvestment.com:21000``, at most 41 issues a key."""

    name = "kis"
    venue = "KRX"
    # Every listed share has an ISIN of its own: none is made up.
    prefix = ""
    url = "ws://ops.koreainvestment.com:21000"
    rest_url = "https://openapi.koreainvestment.com:9443"
    numbering = Numbering.CUMULATIVE
    secrets = ("appkey", "secretkey")
    symbols_a_connection = 41
    most_connections = 1
    connects = Limit(1, 2.0)
    messages = Limit(10, 1.0)
    # It sends PINGPONG about every 110 s.
    silence_s = 300.0

    def __init__(self, symbols: Sequence[str], secrets: Mapping[str, str]) -> None:
        """Begin without an approval key."""
        super().__init__(symbols, secrets)
        self._approval = ""
        self._cipher: tuple[str, str] | None = None

    def prepare(self, fetch: Fetch) -> None:
        """Get the approval key of this connection with the application's keys."""
        answer = fetch(
            f"{self.rest_url}/oauth2/Approval",
            {
                "grant_type": "client_credentials",
                "appkey": self.secret.get("appkey", ""),
                "secretkey": self.secret.get("secretkey", ""),
            },
        )
        try:
            approval = read_json(answer)["approval_key"]
        except (InvalidTrade, KeyError, TypeError):
            approval = None
        if not isinstance(approval, str) or not approval:
            raise AdapterFault("the answer to the keys holds no approval key")
        self._approval = approval

    def address(self) -> str:
        """Return the address of trades."""
        return f"{self.url}/tryitout/{TRADES}"

    def subscribe(self) -> Iterable[str]:
        """Ask for each issue by itself, as it has to be."""
        for symbol in self.symbols:
            yield dumps(
                {
                    "header": {
                        "approval_key": self._approval,
                        "custtype": "P",
                        "tr_type": "1",
                        "content-type": "utf-8",
                    },
                    "body": {"input": {"tr_id": TRADES, "tr_key": symbol}},
                }
            )

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Read trades, an answer to a subscription, or a PINGPONG."""
        try:
            text = frame if isinstance(frame, str) else frame.decode()
        except UnicodeDecodeError as error:
            raise InvalidTrade("not_decoded", "frame", frame, str(error)) from None
        if text[:2] in ("0|", "1|"):
            yield from self._trades(text)
        else:
            yield from self._answer(text)

    def _trades(self, text: str) -> Iterator[Piece]:
        parts = text.split("|", 3)
        if len(parts) < 4:
            rule = "must have four parts with | between them"
            raise InvalidTrade("not_decoded", "frame", text, rule)
        form, kind, count_text, body = parts
        if kind != TRADES:
            yield Skip("no_trade")
            return
        if form == "1":
            body = self._decrypt(body)
        count = int(count_text) if count_text.isascii() and count_text.isdigit() else 0
        values = body.split("^")
        if not 0 < count <= MOST_TRADES_A_FRAME or len(values) != count * FIELDS:
            rule = f"has {len(values)} fields for {count_text[:10]} trades of {FIELDS}"
            raise InvalidTrade("not_decoded", "frame", text, rule)
        for first in range(0, len(values), FIELDS):
            yield _trade(values[first : first + FIELDS])

    def _decrypt(self, body: str) -> str:
        if self._cipher is None:
            rule = "is encrypted, and no key for it has come"
            raise InvalidTrade("not_decoded", "frame", body, rule)
        try:
            return decrypt(*self._cipher, body)
        except ValueError as error:
            raise InvalidTrade("not_decoded", "frame", body, str(error)) from None

    def _answer(self, text: str) -> Iterator[Piece]:
        answer = read_json(text)
        header = answer.get("header") if isinstance(answer, dict) else None
        if not isinstance(header, dict):
            raise InvalidTrade("missing_field", "header", header, "is required")
        if header.get("tr_id") == "PINGPONG":
            yield Skip("keep_alive")
            yield Reply(text)
            return
        body = answer.get("body")
        if not isinstance(body, dict):
            raise InvalidTrade("missing_field", "body", body, "is required")
        if str(body.get("rt_cd")) != "0":
            yield _refusal(body, header)
            return
        output = body.get("output")
        if isinstance(output, dict):
            key, iv = output.get("key"), output.get("iv")
            if isinstance(key, str) and isinstance(iv, str):
                self._cipher = (key, iv)
        yield Skip("acknowledged")

    def without_secrets(self, frame: Frame) -> Frame:
        """Return an answer without the key it brings."""
        if not isinstance(frame, str) or '"iv"' not in frame:
            return frame
        try:
            answer = loads(frame)
            answer["body"]["output"] = {"iv": "", "key": ""}
            return dumps(answer)
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""

    @classmethod
    def isin_of(cls, symbol: str) -> str | None:
        """Return the ISIN of a common share whose code has six digits.

        Preferred shares, foreign issuers, funds and codes with a letter need a list.
        """
        if len(symbol) != 6 or not (symbol.isascii() and symbol.isdigit()):
            return None
        if not symbol.endswith("0"):
            return None
        number = f"KR7{symbol}00"
        return number + isin_check_digit(number)


def decrypt(key: str, iv: str, body: str) -> str:
    """Decrypt text of base64: AES-256 in CBC, padded as PKCS #7. Raises ValueError."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    data = b64decode(body, validate=True)
    cipher = Cipher(algorithms.AES(key.encode()), modes.CBC(iv.encode()))
    decryptor = cipher.decryptor()
    padded = decryptor.update(data) + decryptor.finalize()
    unpadder = PKCS7(128).unpadder()
    return (unpadder.update(padded) + unpadder.finalize()).decode()


def _trade(values: Sequence[str]) -> Piece:
    if values[_EXPECTED] in ("A", "B", "C", "D") and values[_SIZE] in ("", "0"):
        return Skip("expected")
    volume = values[_VOLUME]
    if not (volume.isascii() and volume.isdigit() and len(volume) < 19):
        raise InvalidTrade("bad_seq", "ACML_VOL", volume, "must be a whole number")
    extra: dict[str, Any] = {"cum_volume": int(volume)}
    value = values[_VALUE]
    if value.isascii() and value.isdigit() and len(value) < 19:
        extra["cum_value"] = int(value)
    side = _SIDES.get(values[_SIDE])
    if side is not None:
        extra["side"] = side
    # The volume begins anew every day, and on every board.
    series = f"{values[_DATE]}/{values[_SESSION][:1]}"
    time_us = _time_us(values[_DATE], values[_HOUR])
    return ExchangeTrade(
        values[_CODE],
        time_us,
        values[_PRICE],
        values[_SIZE],
        int(volume),
        series,
        extra,
    )


@lru_cache(maxsize=1_024)
def _time_us(date: str, hour: str) -> int:
    text = date + hour
    if not (len(date) == 8 and len(hour) == 6 and text.isascii() and text.isdigit()):
        rule = "must be a date YYYYMMDD and a time HHMMSS"
        raise InvalidTrade("bad_time", "time", f"{date} {hour}", rule)
    try:
        moment = datetime.fromisoformat(f"{date}T{hour}").replace(tzinfo=_SEOUL)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError) as error:
        raise InvalidTrade("bad_time", "time", text, str(error)) from None


def _refusal(body: Mapping[str, Any], header: Mapping[str, Any]) -> Piece:
    code, words = str(body.get("msg_cd"))[:20], str(body.get("msg1", ""))[:200]
    told = f"{code}: {words} ({str(header.get('tr_key'))[:20]})"
    if code in _ALREADY:
        return Skip("acknowledged")
    if code in _IN_USE:
        return Reconnect(told, is_rate_limit=True)
    if code in _KEY or "approval" in words.lower():
        return TurnedAway(f"{told}; is the key right?")
    return Told(told)
