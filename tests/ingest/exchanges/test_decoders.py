"""Whatever the bytes: trades, a skip, or a refusal by name, and every field right."""

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7
from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    ExchangeCancel,
    ExchangeStatus,
    ExchangeTrade,
    Frame,
    InstrumentDay,
    Notice,
    Numbering,
    Piece,
    Reconnect,
    Reply,
    Skip,
    Told,
    TurnedAway,
)
from ingest.adapters.intake import Intake
from ingest.conditions.sale_rules import Sale
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.binance import Binance
from ingest.exchanges.kis import FIELDS, Kis
from ingest.exchanges.known import BUILT_IN
from ingest.exchanges.upbit import Upbit
from ingest.sources.event import Refusals
from ingest.trade import InvalidTrade, Trade
from tests.ingest.adapters import frames
from tests.ingest.adapters.frames import T0_MS, Deal

KINDS = st.sampled_from([Upbit, Binance, Alpaca, Kis])
FIELD_NAMES = (
    "type ty code cd tp tv ttms tms sid st error status e data s p q t T E m result",
    "msg S i x c z header body tr_id rt_cd output key iv name message trades",
)
KEYS = st.sampled_from(" ".join(FIELD_NAMES).split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["trade", "PINGPONG", "REALTIME", "0", "error", "success", "6E-8"]
    )
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=8)
    ),
    max_leaves=20,
)
JSON_FRAMES = st.builds(json.dumps, VALUES)
KIS_FRAMES = st.builds(
    "|".join,
    st.lists(
        st.sampled_from(["0", "1", "H0STCNT0", "001", "2", "^" * 45, "^" * 91, "AAAA"])
        | st.text("0123456789^|-", max_size=60),
        max_size=6,
    ),
)
FRAMES = st.binary(max_size=80) | st.text(max_size=80) | JSON_FRAMES | KIS_FRAMES


def make(kind: type[Adapter], *symbols: str) -> Adapter:
    return kind(symbols, {"key": "K", "secret": "S", "appkey": "A", "secretkey": "B"})


def read(kind: type[Adapter], frame: Frame) -> list[Piece]:
    return list(make(kind, "AAPL", "005930").decode(frame))


def trades(kind: type[Adapter], frame: Frame) -> list[Piece]:
    """Return what a frame holds beside what it says of the day and of trading."""
    others = InstrumentDay, ExchangeStatus
    return [piece for piece in read(kind, frame) if type(piece) not in others]


@given(KINDS, FRAMES)
def test_no_bytes_raise_anything_but_a_refusal(
    kind: type[Adapter], frame: Frame
) -> None:
    with suppress(InvalidTrade):
        assert all(isinstance(piece, Piece) for piece in read(kind, frame))
    assert isinstance(make(kind).without_secrets(frame), str | bytes)


@given(KINDS, st.lists(FRAMES, max_size=4))
def test_an_intake_survives_all_frames_and_makes_valid_trades(
    kind: type[Adapter], told: list[Frame]
) -> None:
    keys = {"": "KR7005930003", "0": "KR7000660001"}
    intake = Intake(kind.venue, kind.numbering, keys, Refusals())
    adapter = make(kind)
    for frame in told:
        entries, _ = intake.read(adapter, frame, T0_MS * 1000)
        for isin, payload in entries:
            assert Trade.from_wire(payload).isin == isin
    assert intake.counts.frames == len(told)


PRICES = st.one_of(
    st.decimals("0.00000001", "99999999", places=8).map(str),
    st.integers(1, 10**12).map(str),
    st.integers(1, 99).map(lambda n: f"{n}E-8"),
    st.integers(1, 99).map(lambda n: f"{n}.5e3"),
)
DEALS = st.builds(
    Deal,
    symbol=st.sampled_from(["KRW-BTC", "BTCUSDT", "AAPL", "005930"]),
    number=st.integers(1, 2**53),
    price=PRICES,
    size=PRICES,
    time_ms=st.integers(T0_MS, T0_MS + 80_000_000),
    buys=st.booleans(),
)
SPEAKERS: list[tuple[type[Adapter], Callable[[Deal], Frame]]] = [
    (Upbit, frames.upbit),
    (Upbit, lambda deal: frames.upbit(deal, simple=False)),
    (Upbit, lambda deal: b"[" + frames.upbit(deal) + b"]"),
    (Binance, frames.binance),
    (Alpaca, frames.alpaca),
]


@pytest.mark.parametrize(
    ("kind", "speak"), SPEAKERS, ids=["simple", "default", "list", "binance", "alpaca"]
)
@given(deal=DEALS)
def test_a_trade_is_what_an_independent_decoder_reads(
    kind: type[Adapter], speak: Callable[[Deal], Frame], deal: Deal
) -> None:
    """With ``Decimal`` from the frame's text; no double is between."""
    frame = speak(deal)
    keys = {deal.symbol: "KR7005930003"}
    intake = Intake(kind.venue, Numbering.NONE, keys, Refusals())
    [(_, payload)], _ = intake.read(make(kind), frame, T0_MS * 1000)
    logged = json.loads(payload)
    told = oracle(json.loads(frame, parse_float=Decimal))

    assert Decimal(logged["price"]) == Decimal(str(told["price"]))
    assert Decimal(logged["size"]) == Decimal(str(told["size"]))
    assert logged["seq"] == deal.number == told["number"]
    assert logged["time"] // 1000 == deal.time_ms
    assert "E" not in logged["price"].upper()
    assert logged["venue"] == kind.venue
    if kind is not Alpaca:
        assert logged["side"] == ("B" if deal.buys else "S")


def oracle(decoded: Any) -> dict[str, Any]:
    """Return price, size and number of a frame, found by their documented names."""
    if isinstance(decoded, list):
        decoded = decoded[0]
    decoded = decoded.get("data", decoded)
    names = {
        "price": ("tp", "trade_price", "p"),
        "size": ("tv", "trade_volume", "q", "s"),
        "number": ("sid", "sequential_id", "i", "t"),
    }
    if "i" not in decoded:
        return {
            k: next(decoded[n] for n in v if n in decoded) for k, v in names.items()
        }
    return {"price": decoded["p"], "size": decoded["s"], "number": decoded["i"]}


RECORDED = (
    '{"ty":"trade","cd":"KRW-LAMB","tms":1618678262712,"td":"2021-04-17",'
    '"ttm":"16:51:02","ttms":1618678262000,"tp":127.0,"tv":46.48838371,"ab":"BID",'
    '"pcp":123.0,"c":"RISE","cp":4.0,"sid":1618678262000003,"st":"REALTIME"}'
)


OTHER_EVENT = Skip("no_trade", may_be_trade=True)


def test_a_trade_of_upbit_as_documented() -> None:
    assert read(Upbit, RECORDED) == [
        ExchangeTrade(
            "KRW-LAMB",
            1618678262000000,
            "127.0",
            "46.48838371",
            1618678262000003,
            extra={"side": "B"},
            sent_us=1618678262712000,
        ),
        InstrumentDay("KRW-LAMB", prev_close="123"),
    ]


def test_what_is_no_trade_has_its_meaning() -> None:
    for kind, frame, piece in (
        (Upbit, '{"status":"UP"}', Skip("keep_alive")),
        (Upbit, '{"type":"orderbook","code":"KRW-BTC"}', OTHER_EVENT),
        (
            Upbit,
            '{"error":{"name":"TOO_MANY_SUBSCRIBE","message":"m"}}',
            Reconnect("TOO_MANY_SUBSCRIBE: m", is_rate_limit=True),
        ),
        (Upbit, '{"error":{"name":"ODD","message":"m"}}', Told("ODD: m")),
        (Binance, '{"result":null,"id":1}', Skip("acknowledged")),
        (
            Binance,
            '{"error":{"code":2,"msg":"Invalid request"},"id":1}',
            TurnedAway("code 2: Invalid request"),
        ),
        (
            Binance,
            '{"code":-1003,"msg":"Too many requests"}',
            Reconnect("code -1003: Too many requests", is_rate_limit=True),
        ),
        (Binance, '{"code":-1001,"msg":"Internal"}', Told("code -1001: Internal")),
        (
            Alpaca,
            '[{"T":"x","S":"AAPL","i":9,"x":"V","t":"2026-11-25T15:00:06Z"}]',
            ExchangeCancel(
                *("AAPL", 1_795_618_806_000_000, 9, "V/2026-11-25", {"exchange": "V"})
            ),
        ),
        (Alpaca, '[{"T":"q","S":"AAPL"}]', OTHER_EVENT),
        (
            Alpaca,
            '[{"T":"error","code":402,"msg":"auth failed"}]',
            TurnedAway("code 402: auth failed; is the key right?"),
        ),
        (
            Alpaca,
            '[{"T":"error","code":406,"msg":"connection limit exceeded"}]',
            Reconnect("code 406: connection limit exceeded", is_rate_limit=True),
        ),
        (
            Alpaca,
            '[{"T":"error","code":405,"msg":"symbol limit exceeded"}]',
            TurnedAway("code 405: symbol limit exceeded"),
        ),
        (
            Alpaca,
            '[{"T":"error","code":500,"msg":"internal error"}]',
            Told("code 500: internal error"),
        ),
    ):
        assert read(kind, frame) == [piece]


def test_alpaca_logs_in_and_then_subscribes() -> None:
    adapter = make(Alpaca, "AAPL", "MSFT")
    _, login = adapter.decode('[{"T":"success","msg":"connected"}]')
    _, subscription = adapter.decode('[{"T":"success","msg":"authenticated"}]')
    assert isinstance(login, Reply)
    assert json.loads(login.message) == {"action": "auth", "key": "K", "secret": "S"}
    assert isinstance(subscription, Reply)
    asked = {"action": "subscribe", "trades": ["AAPL", "MSFT"]}
    assert json.loads(subscription.message) == asked
    pieces = [*adapter.decode('[{"T":"subscription","trades":["AAPL"],"quotes":[]}]')]
    assert pieces[:2] == [
        Skip("acknowledged"),
        Told("1 symbols were not taken: ['MSFT']"),
    ]


def test_times_of_alpaca_are_cut_to_microseconds() -> None:
    for time, time_us in (
        ("2021-02-22T15:51:44.208Z", 1614009104208000),
        ("2021-02-22T15:51:44.208123987Z", 1614009104208123),
        ("2021-02-22T15:51:44Z", 1614009104000000),
        ("2021-02-22T10:51:44.5-05:00", 1614009104500000),
    ):
        frame = f'[{{"T":"t","S":"AAPL","i":1,"x":"D","p":126.55,"s":1,"t":"{time}"}}]'
        [trade] = read(Alpaca, frame)
        assert isinstance(trade, ExchangeTrade)
        assert trade.time_us == time_us


KIS_RECORDED = (
    "0|H0STCNT0|002|005930^094751^71950^2^1350^1.91^71690.50^71000^72300^70600^72000"
    "^71900^1^8305216^595403999350^21115^28170^7055^136.06^3060313^4163762^5^0.51^29.46"
    "^090014^2^950^090708^5^-350^090030^2^1350^20250730^20^N^93994^113056^1668973^822214"
    "^0.14^10584139^78.47^0^^71000^005930^094751^71900^2^1300^1.84^71690.50^71000^72300"
    "^70600^72000^71900^2^8305218^595404143150^21116^28170^7054^136.06^3060315^4163762^5"
    "^0.51^29.46^090014^2^900^090708^5^-400^090030^2^1300^20250730^20^N^93985^112986"
    "^1668973^822144^0.14^10584139^78.47^0^^71000"
)


def kis_trade(price: str, size: str, volume: int, value: int) -> ExchangeTrade:
    """Return a trade of the recorded frame: 09:47:51 in Seoul."""
    extra = {"cum_volume": volume, "cum_value": value, "side": "S"}
    time_us = 1753836471000000
    trade = ExchangeTrade("005930", time_us, price, size, volume, "20250730/2", extra)
    return trade._replace(sale=Sale("20"))


def test_a_frame_of_kis_as_recorded() -> None:
    day = InstrumentDay("005930", "70600", is_halted=False)
    status = ExchangeStatus("005930", 1753836471000000, "trading", "KRX")
    assert read(Kis, KIS_RECORDED) == [
        *(kis_trade("71950", "1", 8305216, 595403999350), day, status),
        *(kis_trade("71900", "2", 8305218, 595404143150), day, status),
    ]


def test_what_a_frame_of_kis_announces_and_has_not_is_refused() -> None:
    *taken, lost = trades(Kis, KIS_RECORDED.replace("|002|", "|003|"))
    assert taken == trades(Kis, KIS_RECORDED)
    assert isinstance(lost, InvalidTrade)
    assert str(lost).endswith("has 2 records where 003 are announced")
    with pytest.raises(InvalidTrade, match=r"must have four parts"):
        read(Kis, KIS_RECORDED[:12])
    assert read(Kis, "0|H0STASP0|001|x") == [OTHER_EVENT]


def longer(frame: str, *more: str) -> str:
    """Return a frame of KIS whose records have further fields at their ends."""
    head, body = frame[: len("0|H0STCNT0|002|")], frame[len("0|H0STCNT0|002|") :]
    values = body.split("^")
    records = [values[at : at + FIELDS] for at in range(0, len(values), FIELDS)]
    return head + "^".join("^".join([*record, *more]) for record in records)


def test_records_of_kis_that_have_grown_are_read_and_told() -> None:
    """By position; the 47th field is the part of the day."""
    for more, is_drift in ((["2"], False), (["2", "x"], True), (["2", "", "0"], True)):
        notice, *taken = trades(Kis, longer(KIS_RECORDED, *more))
        assert isinstance(notice, Notice)
        length = FIELDS + len(more)
        assert notice.words.startswith(f"records have {length} fields where 46 were")
        assert notice.is_drift is is_drift
        expected = trades(Kis, KIS_RECORDED)
        for trade, before in zip(taken, expected, strict=True):
            assert isinstance(trade, ExchangeTrade)
            assert isinstance(before, ExchangeTrade)
            assert trade == before._replace(
                extra={**before.extra, "session": "regular"}
            )


def test_the_close_before_is_the_price_less_its_change() -> None:
    """Unless the sign and the change disagree: then nothing is said."""
    for price, sign, change, close in (
        *(("71950", "2", "1350", "70600"), ("71950", "1", "1350", "70600")),
        *(("71950", "5", "-50", "72000"), ("71950", "4", "50", "72000")),
        *(("71950", "3", "0", "71950"), ("71950", "2", "-50", None)),
        *(("71950", "3", "50", None), ("71950", "0", "0", None)),
        *(("71950", "2", "71950", None), ("71950", "2", "99999", None)),
        *(("71950", "2", "", None), ("71950", "5", "1E99999999", None)),
    ):
        fields = frames.kis_fields(Deal("005930", 0, price, "1"), 100)
        fields[3:5] = [sign, change]
        fields[35] = ""
        days = [
            p for p in read(Kis, frames.kis(fields)) if isinstance(p, InstrumentDay)
        ]
        assert days == ([] if close is None else [InstrumentDay("005930", close)])


def test_kis_says_whether_an_instrument_is_halted() -> None:
    for flag, is_halted in (("Y", True), ("N", False)):
        fields = frames.kis_fields(Deal("005930", 0, "71900", "1"), 100)
        fields[35] = flag
        assert InstrumentDay("005930", None, is_halted) in read(Kis, frames.kis(fields))


def test_kis_is_answered_and_subscribed_instrument_by_instrument() -> None:
    adapter = make(Kis, "005930", "000660")
    posted: list[tuple[str, Any]] = []

    def fetch(address: str, fields: Any) -> bytes:
        posted.append((address, fields))
        return b'{"approval_key":"key-1"}'

    adapter.prepare(fetch)
    assert posted[0][0].endswith("/oauth2/Approval")
    assert posted[0][1]["appkey"] == "A"
    asked = [json.loads(message) for message in adapter.subscribe()]
    assert [m["body"]["input"]["tr_key"] for m in asked] == 2 * ["005930", "000660"]
    assert asked[0]["header"]["approval_key"] == "key-1"
    ping = '{"header":{"tr_id":"PINGPONG","datetime":"20250730094751"}}'
    assert list(adapter.decode(ping)) == [Skip("keep_alive"), Reply(ping)]
    with pytest.raises(AdapterFault, match=r"holds no approval key"):
        adapter.prepare(lambda _, __: b"[]")


def kis_answer(code: str, words: str, rt_cd: str = "1") -> str:
    """Return an answer to a subscription that was refused."""
    header = {"tr_id": "H0STCNT0", "tr_key": "005930", "encrypt": "N"}
    body = {"rt_cd": rt_cd, "msg_cd": code, "msg1": words}
    return json.dumps({"header": header, "body": body})


def test_refusals_of_kis_have_their_meaning() -> None:
    wrong = read(Kis, kis_answer("OPSP0011", "invalid approval : NOT FOUND"))
    assert isinstance(wrong[0], TurnedAway)
    assert "is the key right?" in wrong[0].words
    in_use = read(Kis, kis_answer("OPSP8996", "ALREADY IN USE appkey"))
    assert isinstance(in_use[0], Reconnect)
    assert in_use[0].is_rate_limit
    over = read(Kis, kis_answer("OPSP0008", "MAX SUBSCRIBE OVER"))
    assert over == [Told("OPSP0008: MAX SUBSCRIBE OVER (005930)")]
    again = read(Kis, kis_answer("OPSP0002", "ALREADY IN SUBSCRIBE"))
    assert again == [Skip("acknowledged")]


def test_an_encrypted_frame_of_kis_is_read_and_its_key_never_recorded() -> None:
    key, iv = "0123456789abcdef0123456789abcdef", "0123456789abcdef"
    adapter = make(Kis, "005930")
    body = {"rt_cd": "0", "msg_cd": "OPSP0000", "output": {"iv": iv, "key": key}}
    answer = json.dumps({"header": {"tr_id": "H0STCNT0"}, "body": body})
    plain = KIS_RECORDED.split("|", 3)[3].encode()
    padder = PKCS7(128).padder()
    padded = padder.update(plain) + padder.finalize()
    cipher = Cipher(algorithms.AES(key.encode()), modes.CBC(iv.encode())).encryptor()
    sealed = b64encode(cipher.update(padded) + cipher.finalize()).decode()
    frame = f"1|H0STCNT0|002|{sealed}"

    with pytest.raises(InvalidTrade, match=r"is encrypted, and no key"):
        list(adapter.decode(frame))
    assert list(adapter.decode(answer)) == [Skip("acknowledged")]
    assert list(adapter.decode(frame)) == read(Kis, KIS_RECORDED)
    with pytest.raises(InvalidTrade):
        list(adapter.decode(frame[:-8]))
    kept = str(adapter.without_secrets(answer))
    assert key not in kept
    assert iv not in kept
    assert json.loads(kept)["body"]["rt_cd"] == "0"


def test_what_kis_expects_before_an_auction_is_no_trade() -> None:
    fields = frames.kis_fields(Deal("005930", 0, "71900", "0"), 100)
    fields[43] = "B"
    assert len(fields) == FIELDS
    assert trades(Kis, frames.kis(fields)) == [Skip("expected")]


def test_isins_of_common_shares_are_made_by_rule() -> None:
    for symbol, isin in (
        ("005930", "KR7005930003"),
        ("000660", "KR7000660001"),
        # A preferred share, a code with a letter: only a list knows.
        ("005935", None),
        ("0126Z0", None),
    ):
        assert Kis.isin_of(symbol) == isin


def test_an_adapter_asks_for_what_it_was_given() -> None:
    for kind in BUILT_IN.values():
        adapter = make(kind, "AAA", "BBB")
        asked = adapter.address() + "".join(adapter.subscribe())
        if kind is not Alpaca:
            assert "aaa" in asked.lower()
            assert "bbb" in asked.lower()
        assert kind.url in adapter.address()


def test_streams_beyond_the_address_are_asked_for_in_messages() -> None:
    symbols = [f"S{n}USDT" for n in range(500)]
    adapter = make(Binance, *symbols)
    in_address = adapter.address().partition("=")[2].split("/")
    in_messages = [
        name
        for message in adapter.subscribe()
        for name in json.loads(message)["params"]
    ]
    assert in_address + in_messages == [f"{symbol.lower()}@trade" for symbol in symbols]
    assert len(adapter.address()) < 4_096
