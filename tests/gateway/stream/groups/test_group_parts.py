"""Figures of one group in two parts of a window."""

import json

from gateway.stream.groups.group_parts import add_parts, window_of
from tests.gateway.samples import at_window
from throttle.contract.group import Group, GroupFigures, market_key, units

KOSPI = market_key("KOSPI")


def figures(*prices: str, before: str | None = "100", volume: str = "1") -> Group:
    """Return figures of instruments with these prices, in window 4,000."""
    made = GroupFigures()
    for price in prices:
        made.add_instrument(price, before)
        made.add_trades(2, units(volume), units("0.000000000000000001"))
    return made.encode(KOSPI, 4_000)


def test_sums_are_exact_and_the_mean_is_weighted() -> None:
    """A double would keep neither the first digit nor the last."""
    one = figures("110", "90", "130", volume="12345678901234567890.5")
    other = figures("99", volume="0.05")
    unpriced = figures("7", before=None)
    added = add_parts(add_parts(one, other), unpriced)
    assert added == Group(
        KOSPI,
        b'{"group":"group:market:KOSPI","window":4000,"instruments":5,"advancing":2,'
        b'"declining":2,"unchanged":0,"unpriced":1,"trades":10,'
        b'"volume":37037036703703703672.55,"value":0.000000000000000005,'
        b'"mean_change_pct":7.2500}',
    )


def test_a_mean_below_zero_and_none_at_all() -> None:
    """What nobody knows stays unknown."""
    small = add_parts(figures("99.9999"), figures("99.9997"))
    assert json.loads(small.body)["mean_change_pct"] == -0.0002
    unknown = figures("1", before=None)
    assert json.loads(add_parts(unknown, unknown).body)["mean_change_pct"] is None
    assert add_parts(unknown, figures("110")).body.endswith(
        b'"mean_change_pct":10.0000}'
    )


def test_parts_in_either_order_are_the_same() -> None:
    """And are the whole, where no digit of a mean was rounded away."""
    one, other = figures("110", "90"), figures("99", "98.5", "3")
    assert add_parts(one, other) == add_parts(other, one)
    assert add_parts(one, other) == figures("110", "90", "99", "98.5", "3")


def test_figures_say_their_window() -> None:
    """The end of it, in milliseconds."""
    assert window_of(at_window(figures("1"), 1_773_964_804_000)) == 1_773_964_804_000
