"""From log entries to Spark's columns."""

from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from operator import add
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from tests.examples import many
from tests.throttle.payloads import NOW_MS, chunks
from throttle.contract.cut import Cut, window_time_ms
from throttle.contract.dead_letter import KEPT_BYTES
from throttle.window.source_rows import (
    ARROW_SCHEMA,
    CUT_KEY,
    READ_KEY,
    SUM_PREFIX,
    SUMMED,
    bound_letters,
    combine,
    cut_row,
    decode_cuts,
    joined,
    read_row,
    trade_rows,
)
from throttle.window.trade_sums import SUMS

TRADE = Trade("KR7005930003", 1_773_964_801_566_788, 7, "199400", "918", {"side": "B"})
APPENDED_MS = TRADE.time_us // 1000 + 5
W = 2_000
LATER_MS = 2 * APPENDED_MS
"""The end of a batch that holds whatever is tested here."""


def make_chunk(*payloads: bytes, append_ms: int = APPENDED_MS) -> Chunk:
    """Make the entries of one append, at positions 42, 43, ..."""
    return Chunk(
        pa.array(range(42, 42 + len(payloads)), pa.int64()),
        pa.array([append_ms] * len(payloads), pa.int64()),
        pa.array(payloads, pa.binary()),
        upto=41 + len(payloads),
    )


def row_of(
    payload: bytes,
    append_ms: int = APPENDED_MS,
    previous: int = 0,
    end: int = LATER_MS,
) -> Any:
    """Return the one row of one entry."""
    chunk = make_chunk(payload, append_ms=append_ms)
    table = trade_rows(chunk, 3, previous, end, 5_000)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    return row


def test_a_trade_becomes_a_row_under_its_isin() -> None:
    """The payload travels whole; only what orders it is taken out."""
    row = row_of(TRADE.to_wire())
    assert row["key"] == "KR7005930003"
    assert (row["time"], row["seq"], row["position"]) == (TRADE.time_us, 7, 42)
    assert (row["partition"], row["trades"]) == (3, 1)
    assert row["payload"] == TRADE.to_wire()
    assert (row["reason"], row["error"]) == (None, None)
    assert row["append_time"].timestamp() == APPENDED_MS / 1000


def test_a_malformed_trade_is_a_row_of_its_own() -> None:
    """A refused trade keeps its bytes, its reason and its place in the log."""
    row = row_of(b"not json")
    assert row["key"] == "!42"
    assert (row["partition"], row["position"], row["trades"]) == (3, 42, 1)
    assert row["payload"] == b"not json"
    assert row["reason"] == "not_json"
    assert "not json" in row["error"]


def test_a_trade_from_the_future_is_refused_by_the_logs_clock() -> None:
    """The rule looks at the entry alone, so a re-run decides the same."""
    assert row_of(TRADE.to_wire(), APPENDED_MS - 5_000)["reason"] is None
    late = row_of(TRADE.to_wire(), APPENDED_MS - 5_006)
    assert late["reason"] == "future_time"


def test_a_straggler_counts_as_appended_after_the_cut() -> None:
    """Its window is the first one of the batch that reads it, valid or refused."""
    for payload in (TRADE.to_wire(), b"not json"):
        row = row_of(payload, APPENDED_MS, previous=APPENDED_MS + 1_000)
        assert row["append_time"].timestamp() == (APPENDED_MS + 1_000) / 1000


def test_an_entry_stamped_past_the_cut_counts_just_before_it() -> None:
    """A writer's stamp does not move it into a window that is not published yet."""
    for payload in (TRADE.to_wire(), b"not json"):
        row = row_of(payload, APPENDED_MS + 3_000, end=APPENDED_MS + 1_000)
        assert row["append_time"].timestamp() == (APPENDED_MS + 999) / 1000
    assert row["time"] == (APPENDED_MS + 999) * 1000


def test_an_entry_stamped_past_the_cut_cannot_be_ahead_of_it() -> None:
    """A trade's time is compared with the cut, if its stamp is beyond: nobody can let
    a trade from 2099 in by stamping its entry so.
    """
    assert row_of(TRADE.to_wire(), 2**50, end=APPENDED_MS - 5_003)["reason"] is None
    late = row_of(TRADE.to_wire(), 2**50, end=APPENDED_MS - 5_004)
    assert late["reason"] == "future_time"


def test_a_stamp_of_any_size_is_no_trouble() -> None:
    """A topic lets its producers stamp what they like, even nothing (-1)."""
    for stamp in (2**63 - 1, -1):
        row = row_of(b"x", stamp, previous=APPENDED_MS, end=APPENDED_MS + 1)
        assert row["append_time"].timestamp() == APPENDED_MS / 1000


def by_line(payload: bytes) -> dict[str, str]:
    """Decode a line; the price is what is after the last space."""
    if payload.startswith(b"?"):
        raise ValueError("is a riddle")
    fields = ("isin", "time", "seq", "size", "price")
    return dict(zip(fields, payload.decode().split(" "), strict=True))


def test_a_decoded_trade_goes_on_in_the_project_s_own_form() -> None:
    """Who publishes it need not know the decoder; what is refused keeps its bytes."""
    line = f"{TRADE.isin} {TRADE.time_us} 7 918 199400".encode()
    wire = Trade(TRADE.isin, TRADE.time_us, 7, "199400", "918").to_wire()
    chunk = make_chunk(line, b"?", wire, b"")
    table = trade_rows(chunk, 3, 0, LATER_MS, 5_000, by_line)
    assert table.schema == ARROW_SCHEMA
    good, riddle, json, empty = table.to_pylist()
    same = trade_rows(make_chunk(wire), 3, 0, LATER_MS, 5_000).to_pylist()
    assert [good] == same
    assert (riddle["key"], riddle["payload"]) == ("!43", b"?")
    assert riddle["reason"] == "not_decoded"
    assert riddle["error"].endswith("ValueError: is a riddle")
    assert (json["reason"], json["payload"]) == ("not_decoded", wire)
    assert (empty["reason"], empty["payload"]) == ("empty", b"")


def test_a_decoded_trade_is_held_to_the_same_rules() -> None:
    """Its window and its time are judged as those of any other."""
    line = f"{TRADE.isin} {TRADE.time_us} 7 918 199400".encode()
    end_ms = APPENDED_MS - 5_005
    [late] = trade_rows(make_chunk(line), 3, 0, end_ms, 5_000, by_line).to_pylist()
    assert (late["reason"], late["payload"]) == ("future_time", line)
    assert late["append_time"].timestamp() == (end_ms - 1) / 1000
    none = trade_rows(make_chunk(), 3, 0, LATER_MS, 5_000, by_line)
    assert (none.num_rows, none.schema) == (0, ARROW_SCHEMA)


def test_no_entries_make_no_rows_with_all_types() -> None:
    """Spark checks the types of a batch without rows too."""
    table = trade_rows(make_chunk(), 3, 0, LATER_MS, 5_000)
    assert table.num_rows == 0
    assert table.schema == ARROW_SCHEMA
    assert combine(table, W).schema == ARROW_SCHEMA


def test_the_cut_travels_with_the_batch_in_its_last_window() -> None:
    """The publisher learns which windows a batch stands for, even empty ones."""
    start, end = Cut(4_000, (1, 2), (1, None)), Cut(8_000, (5, 2), (5, 2))
    table = cut_row(start, end, read_ms=8_013)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert row["key"] == CUT_KEY
    assert row["trades"] == 0
    assert row["append_time"].timestamp() == 7.999
    assert decode_cuts(row["payload"]) == (start, end, 8_013)


def test_what_was_read_travels_with_the_batch() -> None:
    """The reader's own count is what the ledger's other figures must add up to."""
    table = read_row(1, 4_711, 12, Cut(8_000, (5, 2), (5, 2)))
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert (row["key"], row["partition"], row["trades"]) == (READ_KEY, 1, 4_711)
    assert row["position"] == 12
    assert row["append_time"].timestamp() == 7.999


Groups = dict[tuple[int, str, int], tuple[dict[str, Any], int]]
"""By window, key and partition: the latest row, and the trades of all rows."""


def reference(entries: list[dict[str, Any]]) -> Groups:
    """Return the latest row of each group and the trades of all, in plain Python."""
    groups: Groups = {}
    for one in entries:
        window = round(one["append_time"].timestamp() * 1000) // W
        group = (window, one["key"], one["partition"])
        best, sums = groups.get(group, (one, (0,) * len(SUMMED)))
        order = ("time", "seq", "position")
        best = max(best, one, key=lambda row: [row[name] for name in order])
        # Nothing in a column adds nothing.
        added = (one[name] or 0 for name in SUMMED)
        groups[group] = best, tuple(map(add, sums, added))
    return groups


def grouped(table: pa.Table) -> Groups:
    """Return a combined table as ``reference`` does; fails if a group came twice."""
    groups = reference(table.to_pylist())
    assert len(groups) == table.num_rows
    return groups


def without_sums(groups: Groups) -> Groups:
    """Forget what single rows stood for: the sums beside them say it."""
    none = dict.fromkeys(SUMMED, 0)
    return {group: ({**row, **none}, sums) for group, (row, sums) in groups.items()}


def make_table(entries: list[dict[str, Any]]) -> pa.Table:
    """Make a table of rows."""
    return pa.Table.from_pylist(entries, ARROW_SCHEMA)


def numbered(raw: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Give each row the position at which it stands, in its partition alone."""
    rows = []
    for position, (append_ms, key, partition, time, seq, trades) in enumerate(raw, 1):
        refused = key.startswith("!")
        rows.append(
            {
                "append_time": datetime.fromtimestamp(append_ms / 1000, UTC),
                "key": f"!{position}" if refused else key,
                "partition": partition,
                "time": time,
                "seq": seq,
                "position": position,
                "trades": trades,
                **{
                    name: None if refused else n * trades for n, name in enumerate(SUMS)
                },
                "payload": b"%d" % position,
                "reason": "not_json" if refused else None,
                "error": f"error {position}" if refused else None,
            }
        )
    return rows


some_rows = st.lists(
    st.tuples(
        st.integers(0, 3 * W),
        st.sampled_from(["A", "B", "!"]),
        st.integers(0, 1),
        st.integers(0, 2) | st.integers(0, 2**62),
        st.integers(0, 2) | st.integers(0, 2**63 - 1),
        st.integers(1, 3),
    ),
    max_size=30,
).map(numbered)


@settings(max_examples=many(200))
@given(some_rows, st.data())
def test_rows_may_be_combined_in_any_parts_and_order(
    entries: list[dict[str, Any]], data: st.DataObject
) -> None:
    """However a batch is split among tasks and chunks, it says the same."""
    expected = without_sums(reference(entries))
    assert without_sums(grouped(combine(make_table(entries), W))) == expected
    shuffled = data.draw(st.permutations(entries))
    edges = st.lists(st.integers(0, len(entries)), max_size=4)
    at = [0, *sorted(data.draw(edges)), len(entries)]
    parts = [combine(make_table(shuffled[a:b]), W) for a, b in pairwise(at)]
    some = pa.concat_tables(data.draw(st.permutations(parts)))
    assert without_sums(grouped(combine(some, W))) == expected


@given(chunks, st.integers(NOW_MS - 4_000, NOW_MS + 4_000), st.integers(1, 3 * W))
def test_every_entry_of_a_chunk_is_counted_in_one_window(
    chunk: Chunk, previous_end_ms: int, length_ms: int
) -> None:
    """A straggler counts in the window after the cut; nobody is lost on the way."""
    end_ms = previous_end_ms + length_ms
    rows = trade_rows(chunk, 0, previous_end_ms, end_ms, 5_000)
    combined = combine(rows, W).to_pylist()
    assert sum(row["trades"] for row in combined) == len(chunk)
    windows = Counter(
        window_time_ms(append_ms, previous_end_ms, end_ms) // W
        for append_ms in chunk.append_ms.to_pylist()
    )
    found: Counter[int] = Counter()
    for row in combined:
        found[round(row["append_time"].timestamp() * 1000) // W] += row["trades"]
    assert found == windows


def test_markers_are_not_combined_with_trades() -> None:
    """A task's counts and the cut come out as they went in."""
    end = Cut(8_000, (5, 2), (5, 2))
    markers = [cut_row(Cut(4_000, (0, 0), (0, 0)), end)]
    markers += [read_row(p, 7 + p, 3 * p, end) for p in range(2)]
    trades = trade_rows(make_chunk(TRADE.to_wire(), b"x"), 0, 0, LATER_MS, 5_000)
    together = combine(pa.concat_tables([*markers, trades]), W)
    apart = pa.concat_tables([*markers, combine(trades, W)])
    assert grouped(together) == grouped(apart)


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


def test_an_entry_over_the_limit_is_not_decoded() -> None:
    """Whoever decodes it: the size alone refuses it."""

    def decoder(payload: bytes) -> dict[str, Any]:
        raise AssertionError(payload)

    wire = TRADE.to_wire()
    for decode in (decoder, None):
        table = trade_rows(
            make_chunk(wire), 3, 0, LATER_MS, 5_000, decode, len(wire) - 1
        )
        assert table["reason"].to_pylist() == ["too_large"]
    table = trade_rows(make_chunk(wire), 3, 0, LATER_MS, 5_000, None, len(wire))
    assert table["reason"].to_pylist() == [None]


def test_chunks_of_several_partitions_are_checked_as_one() -> None:
    """An entry keeps its partition, be it valid, refused or out of form."""
    chunks = [
        (7, make_chunk(TRADE.to_wire(), b"x")),
        (2, make_chunk()),
        (0, make_chunk(b"", TRADE.to_wire().replace(b"}", b" }"))),
    ]
    together = trade_rows(*joined(chunks), 0, LATER_MS, 5_000).to_pylist()
    apart = [
        row
        for partition, chunk in chunks
        for row in trade_rows(chunk, partition, 0, LATER_MS, 5_000).to_pylist()
    ]

    def place(row: dict[str, Any]) -> tuple[int, int]:
        return row["partition"], row["position"]

    assert sorted(together, key=place) == sorted(apart, key=place)
    assert {row["partition"] for row in together} == {7, 0}


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(0, 30))
def test_odd_sizes_take_a_row_an_issue_however_many_trades(
    sizes: list[int], cut_at: int
) -> None:
    """Whatever is combined before, nothing is lost of what they come to."""
    texts = [f"{size}00000000000000000" for size in sizes]
    payloads = [
        Trade(TRADE.isin, TRADE.time_us, number, "1", text).to_wire()
        for number, text in enumerate(texts)
    ]
    table = trade_rows(make_chunk(*payloads), 3, 0, LATER_MS, 5_000)
    halves = [
        combine(table.slice(0, cut_at), W),
        table.slice(cut_at),
    ]
    combined = combine(pa.concat_tables(halves), W).to_pylist()
    [odd] = [row for row in combined if row["key"].startswith(SUM_PREFIX)]
    assert len(combined) == 2
    volume, value = map(int, odd["payload"].split(b" "))
    assert volume == value == sum(map(int, texts)) * 10**36
    # Of two pieces of the log the keys are different ones.
    assert odd["key"] == f"{SUM_PREFIX}{42 + len(sizes) - 1}:{TRADE.isin}"
