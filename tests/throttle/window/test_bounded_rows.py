"""What others make long or many is bounded before it travels."""

from collections import Counter
from hashlib import sha256

from tests.throttle.window.test_checked_rows import LATER_MS, TRADE, W, make_chunk
from throttle.contract.dead_letter import KEPT_BYTES
from throttle.window.bounded_rows import bound_letters
from throttle.window.checked_rows import joined, trade_rows
from throttle.window.combine import combine
from throttle.window.row_schema import ARROW_SCHEMA


def test_of_long_refused_trades_little_is_handed_on() -> None:
    """The beginning, the size, and the digest of all; of a short one everything."""
    payloads = [b"x" * n for n in (KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1, 10**6)]
    rows = trade_rows(make_chunk(*payloads), 0, 0, LATER_MS, 5_000)
    bounded = bound_letters(rows, Counter())
    assert bounded.schema == ARROW_SCHEMA
    by_size = {row["seq"]: row["payload"] for row in bounded.to_pylist()}
    assert list(sorted(by_size)) == [len(payload) for payload in payloads]
    for payload in payloads[:2]:
        assert by_size[len(payload)] == payload
    for payload in payloads[2:]:
        kept = payload[:KEPT_BYTES] + sha256(payload).digest()
        assert by_size[len(payload)] == kept


def test_beyond_so_many_letters_refused_trades_are_counted_by_reason() -> None:
    """In each partition the first ones are kept, over all chunks of a batch."""
    chunks = [(p, make_chunk(b"x", TRADE.to_wire(), b"", b"[]", b"y")) for p in (7, 2)]
    kept: Counter[int] = Counter({2: 1})
    rows = trade_rows(*joined(chunks), 0, LATER_MS, 5_000)
    bounded = bound_letters(rows, kept, most=2)
    assert kept == {7: 2, 2: 2}
    letters = {
        (r["partition"], r["position"])
        for r in bounded.to_pylist()
        if r["error"] is not None
    }
    assert letters == {(2, 42), (7, 42), (7, 44)}
    combined = combine(bounded, W).to_pylist()
    counted = {
        (r["partition"], r["key"], r["reason"]): r["trades"]
        for r in combined
        if r["reason"] is not None and r["error"] is None
    }
    assert counted == {
        (2, "!empty", "empty"): 1,
        (2, "!not_object", "not_object"): 1,
        (2, "!not_json", "not_json"): 1,
        (7, "!not_object", "not_object"): 1,
        (7, "!not_json", "not_json"): 1,
    }
    assert sum(row["trades"] for row in combined) == 10
