"""Korea Investment & Securities (KIS): Korean stocks, with a key. Pure.

``H0STCNT0``, trades of KRX, and ``H0NXCNT0``, those of NXT, of the symbols that are
asked for as ``005930@NXT``: text frames, ``0|H0STCNT0|003|`` and the fields of each
trade with carets between them. A record had 46 fields, and has 47 since 2026-09-14; the
next one may come any day, so the length is taken from the frame.

``H0STMKO0`` and ``H0NXMKO0`` say of these symbols when a volatility interruption begins
and ends, as far as the key has room beside the trades.

No trade has a number, but each has the day's volume up to and with it, of its venue; so
a trade that comes again has a volume that was there before. Each also has the change
against the day before, and whether the instrument is halted.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import lru_cache, partial
from json import dumps, loads
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    BadChoice,
    ExchangeStatus,
    ExchangeTrade,
    Fetch,
    Frame,
    InstrumentDay,
    Limit,
    Notice,
    Numbering,
    Piece,
    Reconnect,
    Reply,
    Skip,
    Told,
    TurnedAway,
    read_json,
    read_records,
    shortest_decimal,
)
from ingest.conditions.sale_rules import Sale
from ingest.decimals import plain_decimal
from ingest.series import code_of
from ingest.statuses.trading_status import (
    AUCTION,
    HALTED,
    LIMIT_DOWN,
    LIMIT_UP,
    TRADING,
    VOLATILITY_INTERRUPTION,
)
from ingest.trade import InvalidTrade
from tickthrottle_client.trade_v1 import isin_check_digit, microseconds_of

Record = Sequence[str]

FIELDS = 46
"""Fewest fields of a record."""

KNOWN_LENGTHS = (FIELDS, FIELDS + 1)
MOST_RECORDS = 999
"""Most records of a frame: their number is announced in three digits."""

TRADES = "H0STCNT0"
NXT = "NXT"
_OF_NXT = "H0NXCNT0"
_OF_BOTH = "H0UNCNT0"
_BEHIND = {TRADES: "", _OF_NXT: f"@{NXT}"}
"""What stands behind the code in a symbol, by the channel that its trades come on."""

_OPERATIONS = {TRADES: "H0STMKO0", _OF_NXT: "H0NXMKO0"}
"""Channels of market operations, by that of the trades of the same venue."""

_OPERATION_FIELDS = 10
"""Fewest fields of a market operation."""

_OPERATION_HALTED, _HALT_REASON, _IN_VI, _IN_LATE_VI = 1, 2, 8, 9
_CODE, _HOUR, _PRICE, _SIGN, _CHANGE, _SIZE = 0, 1, 2, 3, 4, 12
_VOLUME, _VALUE, _SIDE, _DATE, _SESSION, _HALTED, _EXPECTED = 13, 14, 21, 33, 34, 35, 43
_MARKET_CLASS = 46
_AUCTIONS = ("A", "B", "C", "D")
_SIDES = {"1": "B", "5": "S"}
_CLASSES = {"1": "pre", "2": "regular", "3": "after", "5": "closed"}
_DOWN, _SAME, _UP_SAME = {"4", "5"}, "3", {"1", "2", "3"}
_HALTS = {"Y": True, "N": False}
_LIMITS = {"1": LIMIT_UP, "4": LIMIT_DOWN}
_VENUES = {"": "KRX", f"@{NXT}": NXT}
_CODE_FORM = re.compile(
    r"(?:A(?=[0-9]{6}))?([0-9A-Z]{6}|Q[0-9]{6})(?:\.K[SQ])?(@NXT|@KRX)?", re.ASCII
)
_SEOUL = timezone(timedelta(hours=9))
_IN_USE = ("OPSP8996",)
_ALREADY = ("OPSP0002",)
_KEY = ("OPSP0011",)


class Kis(Adapter):
    """Trades of ``ws://ops.koreainvestment.com:21000``, at most 41 shares a key."""

    name = "kis"
    venue = "KRX"
    # Every listed share has an ISIN of its own: none is made up.
    prefix = ""
    url = "ws://ops.koreainvestment.com:21000"
    rest_url = "https://openapi.koreainvestment.com:9443"
    numbering = Numbering.CUMULATIVE
    conditions = "krx"
    secrets = ("appkey", "secretkey")
    symbols_a_connection = 41
    most_connections = 1
    connects = Limit(1, 2.0)
    messages = Limit(10, 1.0)
    # It sends PINGPONG about every 110 s.
    silence_s = 300.0

    def __init__(self, symbols: Sequence[str], secrets: Mapping[str, str]) -> None:
        super().__init__(symbols, secrets)
        self._approval = ""
        self._cipher: tuple[str, str] | None = None
        self._interrupted: set[str] = set()
        self._asked = {
            channel: frozenset(map(code_of, self._symbols_of(channel)))
            for channel in _BEHIND
        }

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
        return f"{self.url}/tryitout/{TRADES}"

    def subscribe(self) -> Iterable[str]:
        """Ask for each instrument by itself, as it has to be; trades come first."""
        header = {
            "approval_key": self._approval,
            "custtype": "P",
            "tr_type": "1",
            "content-type": "utf-8",
        }
        wanted = [
            {"tr_id": kinds[channel], "tr_key": code_of(symbol)}
            for kinds in ({channel: channel for channel in _BEHIND}, _OPERATIONS)
            for channel in _BEHIND
            for symbol in self._symbols_of(channel)
        ]
        for one in wanted[: self.symbols_a_connection]:
            yield dumps({"header": header, "body": {"input": one}})

    def _symbols_of(self, channel: str) -> list[str]:
        """Return the symbols whose trades come on a channel."""
        behind = _BEHIND[channel]
        return [s for s in self.symbols if s.removeprefix(code_of(s)) == behind]

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Read trades, an answer to a subscription, or a PINGPONG."""
        try:
            text = frame if isinstance(frame, str) else frame.decode()
        except UnicodeDecodeError as error:
            raise InvalidTrade("not_decoded", "frame", frame, str(error)) from None
        if text[:2] in ("0|", "1|"):
            yield from self._trades(text)
        else:
            yield from read_records([text], self._answer)

    def _trades(self, text: str) -> Iterator[Piece]:
        parts = text.split("|", 3)
        if len(parts) < 4:
            rule = "must have four parts with | between them"
            raise InvalidTrade("not_decoded", "frame", text, rule)
        form, kind, count_text, body = parts
        for channel, operations in _OPERATIONS.items():
            if kind == operations and self._asked[channel]:
                body = self._decrypt(body) if form == "1" else body
                records = _share_out(body.split("^"), count_text, _OPERATION_FIELDS)
                yield from self._operations(records, channel, text)
                return
        asked = self._asked.get(kind)
        if not asked:
            yield from self._other_channel(kind)
            return
        if form == "1":
            body = self._decrypt(body)
        records, lost = split_records(body.split("^"), count_text, asked)
        lengths = set(map(len, records))
        if not lost and len(lengths) == 1 and (length := lengths.pop()) > FIELDS:
            words = (
                f"records have {length} fields where {FIELDS} were expected; {FIELDS} "
                "are read by position"
            )
            yield Notice(words, is_drift=length not in KNOWN_LENGTHS)
        yield from read_records(records, partial(_read, _BEHIND[kind]))
        for _ in range(lost):
            rule = f"has {len(records)} records where {count_text} are announced"
            yield InvalidTrade("not_decoded", "frame", text, rule)

    def _operations(
        self, records: Sequence[Record], channel: str, text: str
    ) -> Iterator[Piece]:
        """Yield when interruptions begin and end; no record says at what time."""
        if not records:
            rule = f"has no records of {_OPERATION_FIELDS} fields at least"
            raise InvalidTrade("not_decoded", "frame", text, rule)
        behind = _BEHIND[channel]
        for record in records:
            symbol, extra = record[_CODE] + behind, dict[str, str]()
            if record[_CODE] not in self._asked[channel]:
                yield Skip("not_asked")
                continue
            if "Y" in (record[_IN_VI], record[_IN_LATE_VI]):
                self._interrupted.add(symbol)
                status = VOLATILITY_INTERRUPTION
            elif record[_OPERATION_HALTED] == "Y":
                status, reason = HALTED, record[_HALT_REASON]
                if reason not in ("", "(null)"):
                    extra["reason"] = reason
            elif symbol in self._interrupted:
                status = TRADING
            else:
                # An opening or a close, of which trades say what they are.
                yield Skip("market_operation")
                continue
            if status != VOLATILITY_INTERRUPTION:
                self._interrupted.discard(symbol)
            yield ExchangeStatus(symbol, None, status, _VENUES[behind], extra)

    def _other_channel(self, kind: str) -> Iterator[Piece]:
        holds = {
            TRADES: "trades of KRX: ask for 005930",
            _OF_NXT: "trades of NXT: ask for 005930@NXT",
            _OF_BOTH: "trades of both venues: ask for 005930 and 005930@NXT",
        }.get(kind)
        if holds is None:
            yield Skip("no_trade", may_be_trade=True)
            return
        yield Skip(kind, may_be_trade=True)
        yield Notice(f"frames of {kind} come and are not taken, {holds}")

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
        if not isinstance(frame, str) or '"iv"' not in frame:
            return frame
        try:
            answer = loads(frame)
            answer["body"]["output"] = {"iv": "", "key": ""}
            return dumps(answer)
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""

    @classmethod
    def canonical(cls, symbol: str) -> str:
        """Return a code of six characters, ``005930``, of NXT ``005930@NXT``.

        ``A005930``, as exchanges' files have it, ``005930.KS`` and ``005930@KRX`` mean
        the first.
        """
        code = _CODE_FORM.fullmatch(symbol.upper())
        if code is None:
            raise BadChoice(
                f"symbol {symbol!r}: must be a code of six digits or letters, such as "
                f"005930{_meant(symbol)}"
            )
        return code[1] + (_BEHIND[_OF_NXT] if code[2] == _BEHIND[_OF_NXT] else "")

    @classmethod
    def isin_of(cls, symbol: str) -> str | None:
        """Return the ISIN of a common share whose code has six digits.

        Preferred shares, foreign issuers, funds and codes with a letter need a list.
        """
        code = code_of(symbol)
        if not (_is_digits(code, 6) and code.endswith("0")):
            return None
        number = f"KR7{code}00"
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


def split_records(
    values: Sequence[str], announced: str, asked: Set[str]
) -> tuple[list[Record], int]:
    """Return the records of a frame, and how many that it announces are not there.

    Its fields are shared out among the records that it announces; each has to begin
    with a code that was asked for and a time of day. Where that does not hold, records
    are looked for by these beginnings, so that a broken one costs itself alone; such a
    record may have any number of fields.
    """
    count = _count_of(announced)
    even = _share_out(values, announced, FIELDS)
    begun = sum(_begins(record, 0, asked) for record in even)
    if even and begun == len(even) and len(even[0]) in KNOWN_LENGTHS:
        return even, 0
    by_beginning = _look_for(values, asked)
    if even and begun >= len(by_beginning):
        return even, 0
    if not by_beginning:
        # Nothing can be told apart: as many are lost as were announced.
        return [], max(count, 1)
    return by_beginning, max(count - len(by_beginning), 0)


def _count_of(announced: str) -> int:
    count = int(announced) if _is_digits(announced, len(announced)) else 0
    return min(count, MOST_RECORDS)


def _share_out(values: Sequence[str], announced: str, fewest: int) -> list[Record]:
    count = _count_of(announced)
    if not count or len(values) % count or len(values) // count < fewest:
        return []
    length = len(values) // count
    return [values[at : at + length] for at in range(0, len(values), length)]


def _look_for(values: Sequence[str], asked: Set[str]) -> list[Record]:
    """Return what stands between one beginning and the next; the first is at 0."""
    starts = [at for at in range(1, len(values)) if _begins(values, at, asked)]
    if not starts and not _begins(values, 0, asked):
        return []
    ends = [*starts, len(values)]
    return [values[at:end] for at, end in zip([0, *starts], ends, strict=True)]


def _begins(values: Sequence[str], at: int, asked: Set[str]) -> bool:
    """Tell whether a record begins there: a code, a time of day, its date further on.

    A number in a record may look like a code by chance; it has no date behind it.
    """
    return (
        values[at] in asked
        and at + _DATE < len(values)
        and _is_digits(values[at + 1], 6)
        and _is_digits(values[at + _DATE], 8)
    )


def _is_digits(text: str, count: int) -> bool:
    return len(text) == count and text.isascii() and text.isdigit()


def _read(behind: str, record: Record) -> Iterator[Piece]:
    """Yield what a record holds; ``behind`` the code stands the venue in a symbol."""
    if len(record) < FIELDS:
        rule = f"has {len(record)} fields, a trade has {FIELDS} at least"
        raise InvalidTrade("not_decoded", "record", "^".join(record), rule)
    if record[_EXPECTED] in _AUCTIONS and record[_SIZE] in ("", "0"):
        yield Skip("expected")
        yield from _status(record, behind, is_expected=True)
        return
    yield _trade(record, behind)
    yield from _day(record, behind)
    yield from _status(record, behind, is_expected=False)


def _status(
    record: Record, behind: str, *, is_expected: bool
) -> Iterator[ExchangeStatus]:
    """Yield what a record says of trading: a halt, an auction, a limit of the day."""
    is_halted = _HALTS.get(record[_HALTED])
    extra: dict[str, str] = {}
    if is_halted:
        status = HALTED
    elif is_expected:
        status, extra["reason"] = AUCTION, f"HOUR_CLS_CODE {record[_EXPECTED]}"
        if record[_PRICE].strip("0"):
            extra["expected_price"] = record[_PRICE]
    elif record[_SIGN] in _LIMITS:
        status = _LIMITS[record[_SIGN]]
    elif is_halted is False:
        status = TRADING
    else:
        return
    time_us = _time_us(record[_DATE], record[_HOUR])
    yield ExchangeStatus(
        record[_CODE] + behind, time_us, status, _VENUES[behind], extra
    )


def _trade(record: Record, behind: str) -> ExchangeTrade:
    volume = record[_VOLUME]
    if not (volume.isascii() and volume.isdigit() and len(volume) < 19):
        raise InvalidTrade("bad_seq", "ACML_VOL", volume, "must be a whole number")
    extra: dict[str, Any] = {"cum_volume": int(volume)}
    if behind:
        extra |= {"venue": NXT, "symbol": record[_CODE]}
    value = record[_VALUE]
    if value.isascii() and value.isdigit() and len(value) < 19:
        extra["cum_value"] = int(value)
    side = _SIDES.get(record[_SIDE])
    if side is not None:
        extra["side"] = side
    if len(record) > FIELDS and (session := _CLASSES.get(record[_MARKET_CLASS])):
        extra["session"] = session
    # The volume begins anew every day, perhaps on every board.
    series = f"{record[_DATE]}/{record[_SESSION][:1]}"
    time_us = _time_us(record[_DATE], record[_HOUR])
    return ExchangeTrade(
        record[_CODE] + behind,
        time_us,
        record[_PRICE],
        record[_SIZE],
        int(volume),
        series,
        extra,
        sale=Sale(record[_SESSION]),
    )


def _day(record: Record, behind: str) -> Iterator[InstrumentDay]:
    """Yield what a trade says of its day: the price less its change, and a halt."""
    is_halted = _HALTS.get(record[_HALTED])
    close = None
    with suppress(ValueError):
        close = _close_before(record[_PRICE], record[_SIGN], record[_CHANGE])
    if close is not None or is_halted is not None:
        yield InstrumentDay(record[_CODE] + behind, close, is_halted)


def _close_before(price: str, sign: str, change: str) -> str | None:
    """Return the close that a change is against; None where the two disagree.

    KIS writes a fall as ``5`` and ``-100``, also seen as ``5`` and ``100``.
    """
    by = _number(change.removeprefix("-"))
    if sign in _DOWN:
        by = -by
    elif change.startswith("-") or (by == 0) != (sign == _SAME) or sign not in _UP_SAME:
        return None
    before = _number(price) - by
    return shortest_decimal(format(before, "f")) if before > 0 else None


@lru_cache(maxsize=4_096)
def _number(text: str) -> Decimal:
    return Decimal(plain_decimal(text))


def _meant(symbol: str) -> str:
    """Return a question with the code of an ISIN, or one that has lost its zeros."""
    if len(symbol) == 12 and symbol.startswith("KR7"):
        return f"; did you mean {symbol[3:9]}?"
    is_cut = symbol.isascii() and symbol.isdigit() and len(symbol) < 6
    return f"; did you mean {symbol.zfill(6)}?" if is_cut else ""


@lru_cache(maxsize=1_024)
def _time_us(date: str, hour: str) -> int:
    if not (_is_digits(date, 8) and _is_digits(hour, 6)):
        rule = "must be a date YYYYMMDD and a time HHMMSS"
        raise InvalidTrade("bad_time", "time", f"{date} {hour}", rule)
    try:
        moment = datetime.fromisoformat(f"{date}T{hour}").replace(tzinfo=_SEOUL)
        return microseconds_of(moment)
    except (ValueError, OverflowError) as error:
        raise InvalidTrade("bad_time", "time", date + hour, str(error)) from None


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
