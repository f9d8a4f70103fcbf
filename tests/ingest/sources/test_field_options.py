"""The options of fields: what is read, and what is refused by name."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from ingest.process.redact import problems_of
from ingest.sources.trade_lines import LineOptions
from tickthrottle_client.key_v1 import Venue


def read(**texts: object) -> LineOptions:
    """Return options that are given as a command gives them."""
    return LineOptions.model_validate(texts)


def test_options_are_read_as_they_are_typed() -> None:
    options = read(
        set="isin=KR7005930003, venue=XNAS",
        scale="price=1e-9,size=0.5",
        unsigned=["price,size"],
        leave_out=["correction=8", "conditions~T|U"],
        venue="XNAS=QM",
    )
    assert options.set == {"isin": "KR7005930003", "venue": "XNAS"}
    assert options.scale == {"price": Decimal("1E-9"), "size": Decimal("0.5")}
    assert options.unsigned == {"price", "size"}
    assert [str(c) for c in options.leave_out] == ["correction=8", "conditions~T|U"]
    assert options.venue == Venue("XNAS", "QM")
    assert not options.has_date
    assert read(map="date=D,time=T").has_date
    assert read(set="date=2026-11-25").has_date


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("set", "isin", "must be like venue=XNAS"),
        ("set", "a=1,a=2", "'a': is there twice"),
        ("set", "seq=1", "'seq': cannot be the same in all trades"),
        ("set", "trades=1", "is a name that rows have themselves"),
        ("set", "isin=KR7005930004", "check digit is 3"),
        ("scale", "price=0", "must be above zero"),
        ("scale", "price=x", "price 'x': must be a decimal"),
        ("scale", "time=10", "'time': must be price or size"),
        ("scale", "price", "must be like price=1e-9"),
        ("unsigned", "seq", "'seq': must be price or size"),
        ("leave_out", ["=8"], "must be like correction=8"),
        ("venue", "XN AS", "must be a name of 1 to 20"),
        ("venue", "XNAS=KR", "letters from QM to QZ"),
        ("fold", "both", "earlier"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, text: object, rule: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(**{name: text})
    problem = problems_of(caught.value)
    assert rule in problem
    assert name in problem


def test_a_field_cannot_be_mapped_and_the_same_in_all() -> None:
    with pytest.raises(ValidationError, match="'isin' is in map, too"):
        read(map="isin=symbol", set="isin=KR7005930003")
