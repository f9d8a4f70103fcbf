"""Trading statuses that frames of exchanges say."""

import json
from typing import Any

import pytest
import redis

from ingest.adapters.adapter import (
    Adapter,
    ExchangeStatus,
    Piece,
    Reply,
    Skip,
    Told,
    TurnedAway,
)
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.kis import Kis
from ingest.redis_keys import StatusKeys
from ingest.trade import InvalidTrade
from tests.conftest import eventually
from tests.ingest.adapters.exchange import Session, answering, exchanging
from tests.ingest.adapters.feeding import feeding
from tests.ingest.adapters.frames import Deal, kis, kis_fields

SECRETS = {"key": "K", "secret": "S", "appkey": "A", "secretkey": "S"}


def read(adapter: Adapter, frame: str) -> list[Piece]:
    """Return what a frame holds."""
    return [*adapter.decode(frame)]


def statuses(kind: type[Adapter], frame: str, *symbols: str) -> list[Any]:
    """Return the statuses of a frame."""
    pieces = read(kind(symbols or ("005930", "AAPL"), SECRETS), frame)
    return [piece for piece in pieces if isinstance(piece, ExchangeStatus)]


def record(
    halted: str = "N", sign: str = "2", expected: str = "0", size: str = "1"
) -> list[str]:
    """Return a record of a trade at 09:47:51 in Seoul."""
    fields = kis_fields(Deal("005930", 0, "71900", size), 100)
    fields[3], fields[35], fields[43] = sign, halted, expected
    return fields


@pytest.mark.parametrize(
    ("fields", "status", "extra"),
    [
        (record(), "trading", {}),
        (record(halted="Y"), "halted", {}),
        (record(halted="Y", sign="1"), "halted", {}),
        (record(sign="1"), "limit_up", {}),
        (record(sign="4"), "limit_down", {}),
        (
            record(expected="C", size="0"),
            "auction",
            {"reason": "HOUR_CLS_CODE C", "expected_price": "71900"},
        ),
    ],
)
def test_a_record_of_kis_says_a_status(
    fields: list[str], status: str, extra: dict[str, str]
) -> None:
    [said] = statuses(Kis, kis(fields))
    time_us = 1_753_836_471_000_000
    assert said == ExchangeStatus("005930", time_us, status, "KRX", extra)


def test_of_nxt_it_is_of_that_venue_and_without_a_word_there_is_none() -> None:
    frame = kis(record(), channel="H0NXCNT0")
    [said] = statuses(Kis, frame, "005930@NXT")
    assert (said.symbol, said.venue) == ("005930@NXT", "NXT")
    assert statuses(Kis, kis(record(halted="0"))) == []


def message(**fields: str) -> str:
    """Return a message of Alpaca, as of a time."""
    pairs = ",".join(f'"{name}":"{value}"' for name, value in fields.items())
    return f'[{{{pairs},"S":"AAPL","t":"2021-02-22T15:51:44.208Z"}}]'


@pytest.mark.parametrize(
    ("tape", "code", "reason", "status"),
    [
        ("A", "2", "D", "halted"),
        ("B", "2", "M", "volatility_interruption"),
        ("A", "3", "", "trading"),
        ("C", "H", "T12", "halted"),
        ("C", "H", "LUDP", "volatility_interruption"),
        ("C", "P", "LUDP", "volatility_interruption"),
        ("C", "Q", "T3", "auction"),
        ("C", "T", "", "trading"),
    ],
)
def test_a_status_of_alpaca_is_read_by_its_tape(
    tape: str, code: str, reason: str, status: str
) -> None:
    frame = message(T="s", sc=code, sm="x", rc=reason, rm="words", z=tape)
    [said] = statuses(Alpaca, frame)
    words = f"{reason} words".strip()
    assert said == ExchangeStatus(
        "AAPL", 1_614_009_104_208_000, status, extra={"reason": words}
    )


def test_bands_of_alpaca_keep_their_digits() -> None:
    frame = (
        '[{"T":"l","S":"AAPL","u":3.240,"d":2,"i":"B","t":"2021-02-22T15:51:44Z"},'
        '{"T":"l","S":"AAPL","u":0,"d":0.0,"i":"A","t":"2021-02-22T15:51:45Z"}]'
    )
    pieces = read(Alpaca(("AAPL",), SECRETS), frame)
    extra = {"lower": "2", "upper": "3.240"}
    bands = ExchangeStatus("AAPL", 1_614_009_104_000_000, "price_bands", extra=extra)
    assert pieces == [bands, Skip("status")]


def test_an_unknown_code_is_skipped_by_name() -> None:
    frame = message(T="s", sc="E", sm="x", z="A")
    assert read(Alpaca(("AAPL",), SECRETS), frame) == [Skip("status")]


def test_statuses_of_alpaca_are_asked_for_once_trades_come() -> None:
    """Who may not have them is told, and has its trades all the same."""
    adapter = Alpaca(("AAPL",), SECRETS)
    refusal = '[{"T":"error","code":409,"msg":"insufficient subscription"}]'
    assert isinstance(read(adapter, refusal)[0], TurnedAway)
    acknowledged = '[{"T":"subscription","trades":["AAPL"]}]'
    _, more = read(adapter, acknowledged)
    assert isinstance(more, Reply)
    assert '"statuses": ["AAPL"], "lulds": ["AAPL"]' in more.message
    assert read(adapter, acknowledged) == [Skip("acknowledged")]
    assert isinstance(read(adapter, refusal)[0], Told)


@pytest.mark.redis
def test_a_feed_adds_what_changes_to_redis(redis_url: str, client: redis.Redis) -> None:
    """With each trade the same is said: once is enough."""
    number = 0

    def row(halted: str, price: str = "71900") -> list[str]:
        nonlocal number
        number += 1
        fields = kis_fields(Deal("005930", 0, price, "1"), 100 + number)
        fields[35] = halted
        return fields

    def play(session: Session) -> None:
        session.hear()
        session.send(kis(row("N"), row("N"), row("Y")), kis(row("Y"), row("N")))
        session.wait()

    def words() -> list[str]:
        entries: Any = client.xrange(StatusKeys("test").stream)
        return [json.loads(fields[b"status"])["status"] for _, fields in entries]

    secrets = {"appkey": "A", "secretkey": "S"}
    with (
        exchanging(play) as exchange,
        answering({"/oauth2/Approval": (200, {"approval_key": "k"})}) as (url, _),
        feeding(
            redis_url, Kis, secrets, url=exchange.url, rest_url=url, symbols="005930"
        ),
    ):
        eventually(lambda: len(words()) == 3)
    assert words() == ["trading", "halted", "trading"]


def operation(
    code: str = "005930",
    halted: str = "N",
    reason: str = "(null)",
    kind: str = "",
    in_vi: str = "N",
    late: str = "N",
    *more: str,
) -> str:
    # 396300^N^(null)^^311^^^55^N^N stands in its documents, for an expected opening.
    """Return a record of a market operation, as KIS documents it."""
    return "^".join((code, halted, reason, kind, "", "", "", "55", in_vi, late, *more))


def test_kis_says_when_an_interruption_begins_and_ends() -> None:
    """No time is in it: it is of when it came. What else is said there is skipped."""
    adapter = Kis(("005930", "000660"), SECRETS)

    def told(*records: str, channel: str = "H0STMKO0") -> list[Any]:
        frame = f"0|{channel}|{len(records):03}|{'^'.join(records)}"
        return read(adapter, frame)

    begun = ExchangeStatus("005930", None, "volatility_interruption", "KRX", {})
    over = ExchangeStatus("005930", None, "trading", "KRX", {})
    opening = "005930^N^(null)^^311^^^55^N^N"
    assert told(opening) == [Skip("market_operation")]
    assert told(operation("396300", in_vi="Y")) == [Skip("not_asked")]
    assert told(operation(in_vi="Y")) == [begun]
    assert told(operation("000660"), operation()) == [Skip("market_operation"), over]
    # With the venue behind, as newer frames have it.
    late = operation("005930", "N", "(null)", "", "N", "Y", "1")
    assert told(late) == [begun]
    halt = operation(halted="Y", reason="disclosure")
    assert told(halt) == [
        ExchangeStatus("005930", None, "halted", "KRX", {"reason": "disclosure"})
    ]
    assert told(operation()) == [Skip("market_operation")]
    with pytest.raises(InvalidTrade, match="no records of 10 fields"):
        told("005930^N")
    # Nobody asked for NXT.
    assert told(operation(in_vi="Y"), channel="H0NXMKO0")[0] == Skip(
        "no_trade", may_be_trade=True
    )
    [said] = statuses(Kis, f"0|H0NXMKO0|001|{operation(in_vi='Y')}", "005930@NXT")
    assert (said.symbol, said.venue) == ("005930@NXT", "NXT")


def test_kis_is_asked_for_interruptions_where_there_is_room_beside_the_trades() -> None:
    """41 of all channels; trades come first."""
    codes = [f"{number:06}" for number in range(5_000, 5_030)]
    asked = [
        json.loads(one)["body"]["input"] for one in Kis(codes, SECRETS).subscribe()
    ]
    kinds = [one["tr_id"] for one in asked]
    assert kinds == ["H0STCNT0"] * 30 + ["H0STMKO0"] * 11
    assert [one["tr_key"] for one in asked] == codes + codes[:11]
