"""Moments and places as people write them."""

import re

import pytest

from cli.commands.arguments import (
    BadArgument,
    Place,
    check_number,
    format_moment,
    parse_moment,
    parse_moment_or_place,
)

MS = 1_773_964_802_500


def test_a_moment_is_iso_or_milliseconds() -> None:
    """Without an offset it is UTC; what is finer than a millisecond is cut off."""
    for text in (
        *("1773964802500", "2026-03-20T00:00:02.500", "2026-03-20 00:00:02.500"),
        *("2026-03-20T00:00:02.5Z", "2026-03-20T09:00:02.500+09:00"),
        "2026-03-20T00:00:02.500999",
    ):
        assert parse_moment("from", text) == MS
        assert parse_moment_or_place("from", text) == MS


def test_anything_else_is_refused_with_its_rule() -> None:
    """The sentence names the option, the value and the rule."""
    for text in (
        *("", "yesterday", "2026-13-01", "-5", "1969-12-31", "9" * 15, "9" * 5_000),
        *("12²", "2100-01-01T00:00:00Z", "0001-01-01T00:00+14:00"),
    ):
        with pytest.raises(BadArgument, match=re.escape(f"to {text}: must be a")):
            parse_moment("to", text)
        with pytest.raises(BadArgument, match="or <partition>:<position>"):
            parse_moment_or_place("to", text)


def test_a_place_is_read_as_it_is_printed() -> None:
    place = Place(3, 2**63 - 1)
    assert parse_moment_or_place("from", str(place)) == place


def test_a_bad_place_is_refused() -> None:
    """A position is a number of 63 bits."""
    for text in ("3:", ":3", "a:3", f"0:{2**63}", "1:2:3", "1 : 2"):
        with pytest.raises(BadArgument, match=r"or <partition>:<position>$"):
            parse_moment_or_place("from", text)


def test_a_moment_is_written_so_that_it_can_be_read_again() -> None:
    assert format_moment(MS) == "2026-03-20T00:00:02.500Z"
    assert parse_moment("from", format_moment(MS)) == MS


def test_a_number_out_of_bounds_is_refused() -> None:
    check_number("limit", 1)
    check_number("limit", 100_000)
    with pytest.raises(BadArgument, match="limit 100001: must be from 1 to 100000"):
        check_number("limit", 100_001)
