"""Sets of fields: which there are, in which order, and how many at a time."""

from itertools import combinations

import pytest

from gateway.positions.field_sets import (
    LAST,
    MOST_FURTHER,
    MOST_SETS,
    FieldSets,
    TooManySets,
    UnknownField,
)
from tests.gateway.samples import make_row

BODY = make_row(side="B", cum_volume="7", age="old").body


def learned(*bodies: bytes) -> FieldSets:
    """Return sets that know what some rows have."""
    sets = FieldSets()
    sets.learn(lambda: bodies, 1)
    return sets


def test_all_fields_are_those_of_items_and_those_that_trades_have() -> None:
    """In an order in which what is seldom there comes last; a clash has no place."""
    names = learned(BODY).take(["*"]).names
    assert names[:7] == ("price", "size", "age", "seq", "trades", "side", "cum_volume")
    assert names[7:] == LAST


def test_the_order_is_the_servers_and_equal_sets_are_one() -> None:
    """Clients of one set share their rows' bytes, however they say it."""
    sets = FieldSets()
    first = sets.take(["trades", "price"])
    assert first.names == ("price", "trades")
    assert sets.take(["price", "trades", "price"]) is first


def test_a_field_that_no_row_has_is_refused_by_its_name() -> None:
    """What nobody has seen is a mistake, but for what feeds often have."""
    sets = FieldSets()
    with pytest.raises(UnknownField, match=r"fields: 'cum_volume': is none of price, "):
        sets.take(["price", "cum_volume"])
    assert sets.take(["price", "venue"]).names == ("price", "venue")
    assert learned(BODY).take(["cum_volume"]).names == ("cum_volume",)


def test_so_many_sets_are_in_use_at_a_time() -> None:
    """One more is refused, and told what is there; all fields are not, nor old sets."""
    sets = FieldSets()
    chosen = [*combinations(("price", "size", "seq", "trades", "time", "age"), 2)]
    chosen = [*chosen, ("price",), ("size",)]
    taken = [sets.take(names) for names in chosen[:MOST_SETS]]
    with pytest.raises(TooManySets, match=r'16 sets .* \["\*"\].*\["price","size"\]'):
        sets.take(chosen[MOST_SETS])
    assert sets.take(chosen[0]) is taken[0]
    every = sets.take(["*"])
    for fields in (*taken[1:2], every):
        sets.release(fields)
    assert sets.take(chosen[MOST_SETS]).users == 1


def test_so_many_further_fields_have_positions() -> None:
    """Whoever feeds names without end makes no row longer."""
    names = {f"field_{number}": "x" for number in range(MOST_FURTHER + 5)}
    odd = make_row(**{"no name": "x", "é": "x"}).body
    sets = learned(odd, make_row(**names).body)
    further = [n for n in sets.take(["*"]).names if n.startswith("field_")]
    assert further == [*names][:MOST_FURTHER]
    assert not {"no name", "é"} & {*sets.take(["*"]).names}


def test_rows_are_looked_at_once_for_a_window() -> None:
    """Who subscribes again and again costs nothing more."""
    sets = learned(BODY)
    sets.learn(lambda: [make_row(later="x").body], 1)
    assert "later" not in sets.take(["*"]).names
    sets.learn(lambda: [make_row(later="x").body], 2)
    assert "later" in sets.take(["*"]).names
