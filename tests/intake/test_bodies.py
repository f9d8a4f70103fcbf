"""What a body holds, in each form; what is refused alone and what as a whole."""

import json
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.admission.tokens import TokenGrant
from ingest.files.records import MAX_LINE_BYTES
from ingest.sources.trade_lines import LineOptions, LineReader
from ingest.trade import Trade
from intake.bodies import SHOWN_REFUSALS, BadBody, ReadBody, read_body
from intake.settings import MOST_TRADES
from tests.ingest.strategies import trades
from tickthrottle_client.key_v1 import key_of

ISIN = "KR7005930003"
NOW_US = 1_773_964_804_000_000
EVERYTHING = TokenGrant(may_write=True)
FIELDS = {"isin": ISIN, "time": NOW_US, "seq": 1, "price": "1.50", "size": 3}


def read(body: bytes, kind: str, grant: TokenGrant = EVERYTHING) -> ReadBody:
    """Read a body as the intake does."""
    reader = LineReader(LineOptions(), 1, lambda: NOW_US, numbers_missing=True)
    return read_body(body, kind, reader, grant)


@given(st.lists(trades, min_size=1, max_size=5), st.sampled_from(["list", "object"]))
def test_any_trades_come_through_in_each_form(sent: list[Trade], form: str) -> None:
    wires = [trade.to_wire() for trade in sent]
    whole = b"[%b]" % b",".join(wires)
    body = whole if form == "list" else b'{"trades":%b}' % whole
    lines = b"\n".join(wires)

    for found in (
        read(body, "application/json; charset=utf-8"),
        read(lines, "application/x-ndjson"),
    ):
        assert [Trade.from_wire(payload) for _, payload in found.entries] == sent
        assert found.to_answer()["accepted"] == len(sent)


def test_a_bad_trade_is_refused_alone() -> None:
    bad = [{**FIELDS, "price": -1}, 5, {**FIELDS, "isin": "X"}]
    found = read(orjson.dumps([FIELDS, *bad, FIELDS]), "application/json")

    answer = found.to_answer()
    assert (answer["accepted"], answer["refused"]) == (2, 3)
    assert answer["reasons"] == {"bad_price": 1, "not_object": 1, "bad_isin": 1}
    assert [one["index"] for one in answer["refusals"]] == [1, 2, 3]
    assert answer["refusals"][0]["message"].startswith("price -1: must be")


def test_what_a_trade_counts_for_comes_through_and_a_wrong_word_is_told() -> None:
    sent = [{**FIELDS, "updates": text} for text in ("range,volume", "", "low", 1)]
    found = read(orjson.dumps(sent), "application/json")

    taken = [Trade.from_wire(payload).extra for _, payload in found.entries]
    assert taken == [{"updates": "range,volume"}, {}]
    answer = found.to_answer()
    assert answer["reasons"] == {"bad_field": 2}
    assert answer["refusals"][0]["message"].startswith(
        "updates 'low': must name what the trade counts for, one or more of last, range"
    )


def test_refusals_are_told_up_to_a_number() -> None:
    found = read(orjson.dumps([{}] * 100), "application/json")

    assert len(found.refusals) == SHOWN_REFUSALS
    assert found.reasons.total() == 100


def test_a_trade_without_a_number_gets_one() -> None:
    without = {k: v for k, v in FIELDS.items() if k != "seq"}
    numbers = count(1)
    found = read(orjson.dumps([without, FIELDS, without]), "application/json")

    seqs = [json.loads(payload)["seq"] for _, payload in found.entries]
    assert seqs == [next(numbers), 1, next(numbers)]


def test_a_token_covers_its_keys() -> None:
    grant = TokenGrant(frozenset({ISIN}), may_write=True)
    other = {**FIELDS, "isin": "KR7000660001"}
    found = read(orjson.dumps([FIELDS, other]), "application/json", grant)

    assert [isin for isin, _ in found.entries] == [ISIN]
    assert found.reasons == {"not_allowed": 1}


def test_a_body_that_cannot_be_read() -> None:
    for body, kind, status, rule in (
        (b"{", "application/json", 400, "is not JSON"),
        (b"5", "application/json", 400, "must be a list"),
        (b"{}", "application/json", 400, "must be a list"),
        (b"[]", "application/json", 400, "holds no trade"),
        (b"\n", "application/x-ndjson", 400, "holds no trade"),
        (b"[]", "text/plain", 415, "must be application/json"),
        (b"[]", "", 415, "content-type none"),
        (b"{}\n" * (MOST_TRADES + 1), "application/jsonl", 413, "may have"),
    ):
        with pytest.raises(BadBody, match=rule) as caught:
            read(body, kind)
        assert caught.value.status == status


@given(
    st.binary(max_size=300), st.sampled_from(["application/json", "application/jsonl"])
)
def test_any_bytes_are_read_or_refused(body: bytes, kind: str) -> None:
    try:
        answer: dict[str, Any] = read(body, kind).to_answer()
    except BadBody:
        return
    assert orjson.dumps(answer)


def test_a_line_that_is_too_long_is_refused_alone() -> None:
    wire = orjson.dumps(FIELDS)
    long = orjson.dumps({**FIELDS, "pad": "x" * MAX_LINE_BYTES})
    for lines in ([wire, long, wire], [wire, wire, long]):
        answer = read(b"\n".join(lines), "application/x-ndjson").to_answer()
        assert (answer["accepted"], answer["refused"]) == (2, 1)
        assert answer["reasons"] == {"too_large": 1}
        assert answer["refusals"][0]["index"] == lines.index(long)


def test_symbols_of_a_venue_get_keys() -> None:
    """In ``isin`` or in ``symbol``, in each form of a body."""
    options = LineOptions.model_validate({"venue": "XMKT"})
    reader = LineReader(options, 1, lambda: NOW_US, numbers_missing=True)
    named = [{**FIELDS, "isin": "BTC"}, {**FIELDS, "isin": None, "symbol": "BTC"}]
    lines = b"\n".join(orjson.dumps(fields) for fields in named)
    for body, kind in (
        (orjson.dumps(named), "application/json"),
        (lines, "application/x-ndjson"),
    ):
        found = read_body(body, kind, reader, EVERYTHING)
        assert [isin for isin, _ in found.entries] == [key_of("QX", "BTC")] * 2
        grant = TokenGrant(may_write=True, keys=frozenset({ISIN}))
        assert not read_body(body, kind, reader, grant).entries
