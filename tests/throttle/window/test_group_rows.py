"""What windows say of markets and sectors, against a plain computation of the same."""

from collections import defaultdict
from fractions import Fraction
from math import floor
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from ingest.trade import Trade
from tests.examples import many
from tests.throttle.conflated import as_conflated, rows_between
from tests.throttle.payloads import ISINS, MAX_AHEAD_MS, NOW_MS, make_chunk
from throttle.contract.cut import Cut
from throttle.contract.group import Group
from throttle.window.batch import Batch, assemble
from throttle.window.instrument_columns import InstrumentColumns

W = 2_000

texts = st.sampled_from(
    ["1", "100", "99.5", "100.00", "0.000000000000000001", "999999999999999999.5"]
) | st.integers(1, 300).map(str)
names = st.sampled_from(["KOSPI", "KOSDAQ", 'a "b\\', "},{", None])
tables = st.dictionaries(
    st.sampled_from(ISINS[:4]), st.tuples(names, names, texts | st.none()), min_size=1
)
Told = tuple[int, int, str, int, str, str]
trades = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 3 * W - 1),
        st.sampled_from(ISINS[:5]),
        st.integers(0, 50),
        texts,
        texts,
    ),
    max_size=12,
)


def batch_of(told: list[Told], table: dict[str, Any], is_live: bool = False) -> Batch:
    """Assemble trades: partition, moment, instrument, time, price and size of each."""
    parts: list[list[tuple[int, bytes]]] = [[], []]
    for partition, ms, isin, time, price, size in sorted(told, key=lambda t: t[1]):
        trade = Trade(isin, NOW_MS * 1000 + time, 1, price, size)
        parts[partition].append((NOW_MS + ms, trade.to_wire()))
    chunks = [make_chunk(part) for part in parts]
    zeros = (0, 0)
    end = Cut(NOW_MS + 3 * W, (1 << 62,) * 2, zeros)
    rows = rows_between(Cut(NOW_MS, zeros, zeros), end, chunks, MAX_AHEAD_MS)
    instruments = InstrumentColumns(
        Instruments(
            (
                InstrumentEntry(isin, market=market, sector=sector, prev_close=close)
                for isin, (market, sector, close) in table.items()
            ),
            version=7,
        )
    )
    conflated = as_conflated(rows, W, is_live).flatten()
    return assemble(instruments.join(conflated), W, instruments)


def expected(
    told: list[Told],
    table: dict[str, Any],
    stale: set[tuple[int, str]],
    ends: list[int],
    as_one: bool = False,
) -> list[dict[str, Any]]:
    """Compute groups trade by trade; several windows ``as_one`` stand for the last."""
    groups: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(Fraction))
    newest: dict[str, Any] = {}
    positions = [0, 0]
    kept = []
    for partition, ms, isin, time, price, size in sorted(told, key=lambda t: t[1]):
        end = NOW_MS + (ms // W + 1) * W
        positions[partition] += 1
        if end not in ends:
            continue
        kept.append((isin, Fraction(price), Fraction(size)))
        if (end, isin) in stale:
            continue
        order = (end, time, positions[partition], partition)
        if isin not in newest or order > newest[isin][0]:
            newest[isin] = order, Fraction(price)
    for kind, column in (("market", 0), ("sector", 1)):
        for isin, price, size in kept:
            known = table.get(isin, (None, None, None))
            group = groups[f"group:{kind}:{known[column] or ''}"]
            group["trades"] += 1
            group["volume"] += size
            group["value"] += price * size
        for isin, (_, price) in newest.items():
            known = table.get(isin, (None, None, None))
            group = groups[f"group:{kind}:{known[column] or ''}"]
            group["instruments"] += 1
            if known[2] is not None:
                close = Fraction(known[2])
                group["advancing"] += price > close
                group["declining"] += price < close
                group["unchanged"] += price == close
                change = (price / close - 1) * 100
                group["changes"] += Fraction(floor(change * 10**6 + Fraction(1, 2)))
    result = []
    for key in sorted(groups):
        group = groups[key]
        priced = group["advancing"] + group["declining"] + group["unchanged"]
        mean = None
        if priced:
            mean = Fraction(floor(group["changes"] / priced / 100 + Fraction(1, 2)))
        result.append(
            {
                "group": key,
                "window": ends[-1],
                **{
                    name: group[name]
                    for name in ("instruments", "advancing", "declining", "unchanged")
                },
                "unpriced": group["instruments"] - priced,
                **{name: group[name] for name in ("trades", "volume", "value")},
                "mean_change_pct": None if mean is None else mean / 10**4,
            }
        )
    return result


def decoded(groups: Any) -> list[dict[str, Any]]:
    """Return the bodies of groups, each number as a fraction."""
    bodies = []
    for group in groups:
        assert isinstance(group, Group)
        body = exact(group.body)
        assert body["group"] == group.key
        bodies.append(body)
    return bodies


def exact(body: bytes) -> dict[str, Any]:
    """Decode JSON without losing a digit."""
    from json import loads

    fields: dict[str, Any] = loads(body, parse_float=Fraction, parse_int=Fraction)
    return fields


@settings(max_examples=many(120), deadline=None)
@given(trades, tables, st.booleans(), st.data())
def test_groups_are_what_a_plain_computation_says(
    told: list[Told], table: dict[str, Any], is_live: bool, data: st.DataObject
) -> None:
    """By columns, for any trades and tables, and whatever turns out to be stale.

    The sum over markets is the sum over sectors and the window's rows.
    """
    batch = batch_of(told, table, is_live)
    assert batch.groups is not None
    rows = [(w.end_ms, isin) for w in batch.windows for isin in w.rows]
    stale = set(data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else [])
    groups = batch.groups.groups(frozenset(stale))
    ends = [window.end_ms for window in batch.windows]
    for window, found in zip(batch.windows, groups.windows, strict=True):
        assert decoded(found) == expected(told, table, stale, [window.end_ms])
        left = [r for r in window.rows if (window.end_ms, r) not in stale]
        for kind in ("market", "sector"):
            bodies = [b for b in decoded(found) if f":{kind}:" in b["group"][:14]]
            assert sum(body["instruments"] for body in bodies) == len(left)
    assert decoded(groups.together) == expected(told, table, stale, ends, as_one=True)
    assert [count.unknown_instrument for count in batch.counts] == [
        sum(isin not in table for p, _, isin, *_ in told if p == partition)
        for partition in (0, 1)
    ]
    assert batch.end.instruments == 7


def test_without_a_table_nothing_is_said_of_groups() -> None:
    """The cut names no table either, as that of an earlier version did not."""
    chunk = make_chunk(
        [(NOW_MS, Trade(ISINS[0], NOW_MS * 1000, 1, "1", "1").to_wire())]
    )
    zeros = (0,)
    cuts = Cut(NOW_MS, zeros, zeros), Cut(NOW_MS + W, (1 << 62,), zeros)
    rows = rows_between(*cuts, [chunk], MAX_AHEAD_MS)
    batch = assemble(as_conflated(rows, W), W)
    assert batch.groups is None
    assert "instruments" not in batch.end.to_offset()


def test_a_table_of_many_instruments_is_joined_by_place() -> None:
    """Instruments that are not in it have no place, and nothing is known of them."""
    entries = [InstrumentEntry(isin, market="M", prev_close="1") for isin in ISINS[1:3]]
    columns = InstrumentColumns(Instruments(entries, version=1))
    joined = columns.join(pa.table({"key": [ISINS[2], "!cut", ISINS[0], ISINS[1]]}))
    markets = columns.take("market", joined["place"]).to_pylist()
    assert markets == ["M", None, None, "M"]
