"""Trades of every kind, for Hypothesis."""

import operator
from decimal import Decimal

from hypothesis import strategies as st
from stdnum import isin as stdnum_isin

from ingest.trade import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    MAX_SEQ,
    REQUIRED,
    RESERVED,
    JsonNumber,
    Trade,
)
from tickthrottle_client.updates_v1 import ALL, FIELD


def make_isin(country: str, number: str) -> str:
    """A well-formed ISIN with the right check digit."""
    return country + number + str(stdnum_isin.calc_check_digit(country + number))


isins = st.builds(
    make_isin,
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=2, max_size=2),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=9, max_size=9),
)
decimals = st.from_regex(
    r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?", fullmatch=True
).filter(lambda text: Decimal(text) > 0)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
number_texts = st.from_regex(
    r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?", fullmatch=True
)
"""Numbers as JSON writes them, most of which no double holds."""


def _decoded(text: str) -> int | JsonNumber:
    is_plain = text.removeprefix("-").isdigit() and text != "-0"
    is_kept = is_plain and -(2**63) <= int(text) < 2**64
    return int(text) if is_kept else JsonNumber(text)


updates = st.sampled_from(
    ["none", "last", "range", "volume", "volume,range", "last,volume", ALL.encode()]
)
"""What trades say that they count for."""

says_updates = st.just({}) | st.fixed_dictionaries({FIELD: updates})
further = st.dictionaries(
    texts.filter(lambda name: name not in (*REQUIRED, *RESERVED, FIELD)),
    st.none() | st.booleans() | number_texts.map(_decoded) | texts,
    max_size=4,
)
extras = st.builds(operator.or_, further, says_updates)
trades = st.builds(
    Trade,
    isins,
    st.integers(EARLIEST_TIME_US, LATEST_TIME_US - 1),
    st.integers(0, MAX_SEQ),
    decimals,
    decimals,
    extras,
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5
)
