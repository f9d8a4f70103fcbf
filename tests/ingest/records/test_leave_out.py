"""Conditions by which records are left out: each operator, each kind of value."""

from typing import Any

import pytest

from ingest.records.leave_out import Condition, value_at
from ingest.trade import JsonNumber


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("c=8", "8"),
        ("c=8|10", JsonNumber("10")),
        ("c=true", True),
        ("c~37", "12,37"),
        ("c~I", "@ I"),
        ("c~T|I", ["@", "I"]),
        ("c~2", "1;2|3"),
        ("Trade Correction=08", "08"),
        ("c~~TU", "@FTI"),
        ("size~~-", "-5"),
        ("c", "08"),
        ("c", 8),
        ("c", True),
        ("c", "x"),
    ],
)
def test_a_record_that_meets_it(condition: str, value: Any) -> None:
    rule = Condition.parse(condition)
    assert rule.is_met_by({rule.path[0]: value})
    assert str(rule) == condition


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("c=8", "08"),
        ("c=8", None),
        ("c=8", ["8"]),
        ("c~2", "12,37"),
        ("c~T", "@FTI"),
        ("c~T", []),
        ("c~~T", ""),
        ("c", ""),
        ("c", "0"),
        ("c", "0.0"),
        ("c", 0),
        ("c", "false"),
        ("c", ["0", ""]),
        ("c", None),
        ("d", "8"),
    ],
)
def test_a_record_that_does_not(condition: str, value: Any) -> None:
    assert not Condition.parse(condition).is_met_by({"c": value})


def test_a_field_may_be_within_another_or_be_called_otherwise() -> None:
    rule = Condition.parse("data.c~T")
    assert rule.is_met_by({"data": {"c": ["T"]}})
    assert rule.is_met_by({"data.c": "T"})
    assert not rule.is_met_by({"data": "T"})
    renamed = rule.renamed({"data.c": "side"})
    assert renamed.is_met_by({"side": "T"})
    assert (renamed.text, rule.renamed({"c": "side"})) == (rule.text, rule)


@pytest.mark.parametrize("text", ["", "=8", "~T", "c~", "c=" + "x" * 400])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be like correction=8"):
        Condition.parse(text)


def test_a_whole_name_comes_before_its_parts() -> None:
    assert value_at({"a.b": 1, "a": {"b": 2}}, ("a", "b")) == 1
    assert value_at({"a": {"b": 2}}, ("a", "b")) == 2
    assert value_at({"a": 2}, ("a", "b")) is None
