"""What may stand in a trade log, for Hypothesis: trades, nearly trades, rubbish."""

import operator
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from ingest.sources.faults import break_trade
from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from tests.ingest.strategies import decimals, make_isin, says_updates, trades

ISINS = tuple(make_isin("KR", f"700{n:06d}") for n in range(4))
NOW_MS = 1_773_964_804_000
MAX_AHEAD_MS = 5_000

_PLAIN_NAMES = ("side", "venue", "cum_volume", "s", "tim", "price_", "trade", "sizes")
_plain = st.text("AZaz09 -:,{}'/<>&", max_size=6) | st.integers(-(10**6), 10**18)

plain_trades = st.builds(
    Trade,
    st.sampled_from(ISINS),
    st.integers(NOW_MS - 1_000, NOW_MS + 10_000).map(lambda ms: ms * 1000),
    st.integers(0, 10**6) | st.integers(10**17, 2**63 - 1),
    st.sampled_from(["1", "0.30", "199500", "0.000000001", "1.000"]) | decimals,
    st.sampled_from(["1", "918", "0.5"]) | decimals,
    st.builds(
        operator.or_,
        st.dictionaries(st.sampled_from(_PLAIN_NAMES), _plain, max_size=3),
        says_updates,
    ),
)
"""Trades as a feed writes them, some of them stamped ahead of the log's clock."""

valid_payloads = (plain_trades | trades).map(Trade.to_wire)

_LITERALS = (
    *('"0.00"', '"0"', '"0.0000000001"', '"1.50"', "1.50", "150", "0.00", "-0", "0"),
    *('"01"', "01", '"1e5"', "1e5", "1E400", '"-1"', "-1", '"1."', '".5"', '"+1"'),
    *("9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *('"9223372036854775807"', "1000000000000000000", "999999999999999999", "-10"),
    *('"1234567890123456789"', "1773964804000000", '"1773964804000000"'),
    *("4102444800000000", "631151999999999", "null", "true", "[]", "{}", '[{"a":1}]'),
    *('""', '" "', '"a\\"b"', '"\\u0041"', '"\\ud800"', '"\\\\"', '"\x7f"', '"\x00"'),
    *(
        '"é"',
        '"한국"',
        '"a\nb"',
        "NaN",
        "Infinity",
        "",
        f'"{"9" * 19}"',
        f'"{ISINS[0]}"',
    ),
    *('"volume"', '"last,range"', '"range, volume"', '"none,last"', '"volum\\u0065"'),
    *(f'"{ISINS[1]}\\n"', f'"{ISINS[0][:-1]}X"', f'"{ISINS[0].lower()}"'),
)
_NAMES = (
    *("isin", "time", "seq", "price", "size", "trades", "trade", "pric", "sizes"),
    *("updates_", "updat\\u0065s", "Side", "a b"),
    *(
        "isi",
        "timed",
        "seq_",
        "s",
        "",
        "side",
        "updates",
        "update",
        "a\\u0062",
        "é",
        "_0",
    ),
)
_SEPARATORS = ((",", ":"), (", ", ": "), (",\n", ":"), (" ,", " :"), (",", ":\t"))
_ENDS = ("", "", "", "\n", " ", "\x00", "\r\n", "}", ",", "x", "\ufeff")


@st.composite
def json_payloads(draw: st.DrawFn) -> bytes:
    """Write a trade by hand: fields changed, doubled, swapped, left out, added."""
    trade = draw(plain_trades)
    fields = [
        ("isin", f'"{trade.isin}"'),
        ("time", str(trade.time_us)),
        ("seq", str(trade.seq)),
        ("price", f'"{trade.price}"'),
        ("size", f'"{trade.size}"'),
        ("side", '"B"'),
        ("venue", "7"),
    ][: draw(st.integers(5, 7))]
    literals, names = st.sampled_from(_LITERALS), st.sampled_from(_NAMES)
    for edit in draw(st.lists(st.integers(0, 4), max_size=3)):
        at = draw(st.integers(0, len(fields) - 1)) if fields else 0
        if edit == 0 or not fields:
            fields.insert(at, (draw(names), draw(literals)))
        elif edit == 1:
            fields[at] = (fields[at][0], draw(literals))
        elif edit == 2:
            fields.append(draw(st.sampled_from(fields)))
        elif edit == 3:
            fields[at], fields[0] = fields[0], fields[at]
        else:
            del fields[at]
    comma, colon = draw(st.sampled_from(_SEPARATORS[:1] * 4 + _SEPARATORS))
    text = comma.join(f'"{name}"{colon}{value}' for name, value in fields)
    start, end = draw(st.sampled_from(_ENDS)), draw(st.sampled_from(_ENDS))
    start = start if draw(st.booleans()) else ""
    return f"{start}{{{text}}}{end}".encode()


@st.composite
def damaged_payloads(draw: st.DrawFn) -> bytes:
    """Change, cut or add a few bytes of a valid payload."""
    payload = bytearray(draw(valid_payloads))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload)))
        some = st.binary(max_size=3) | st.sampled_from(
            [b'"', b",", b"0", b"\x00", b"\xff", b"\n", b" ", b"\\", b"}", b"trades"]
        )
        payload[at : at + draw(st.integers(0, 2))] = draw(some)
    return bytes(payload)


malformed_payloads = st.builds(
    lambda seed, trade: break_trade(Random(seed), trade.to_wire()),
    st.integers(0, 2**32),
    plain_trades,
)

payloads = (
    valid_payloads
    | json_payloads()
    | damaged_payloads()
    | malformed_payloads
    | st.binary(max_size=40)
)


def make_chunk(
    entries: list[tuple[int, bytes]], first_position: int = 1 << 61
) -> Chunk:
    """Make consecutive entries of one partition from append times and payloads."""
    size = len(entries)
    return Chunk(
        pa.array(range(first_position, first_position + size), pa.int64()),
        pa.array([append_ms for append_ms, _ in entries], pa.int64()),
        pa.array([payload for _, payload in entries], pa.binary()),
        first_position + size - 1,
    )


chunks = st.lists(
    st.tuples(st.integers(NOW_MS - 3_000, NOW_MS + 3_000), payloads), max_size=12
).map(make_chunk)
