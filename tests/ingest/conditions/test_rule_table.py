"""How a table is read, and what it says of several codes."""

import pytest

from ingest.conditions.rule_table import BadTable, ConditionRule, Last, parse_table

HEAD = "plan,code,last,range,volume\n"
TEXT = f"""# a comment
#time-zone: America/New_York

{HEAD}CTA,B,no,no,yes
UTP,B,YES,Yes,yes
,AVG,no,no,yes
UTP,*,yes,no,no
"""


def test_several_codes_allow_the_least_of_each() -> None:
    table = parse_table("own", TEXT)
    assert table.rule_of("B", "C") == ConditionRule(Last.YES, True, True)
    assert table.rule_of(["B", "AVG"], "UTP") == ConditionRule(Last.NO, False, True)
    assert table.rule_of("B,other", "C") == ConditionRule(Last.YES, False, False)
    assert str(table.time_zone) == "America/New_York"


def test_what_is_in_no_table_counts_for_the_volume_and_is_named() -> None:
    table = parse_table("own", TEXT)
    assert table.rule_of("x B", "A") == ConditionRule(Last.NO, False, True, ("x",))
    assert table.rule_of("B", "Q").unknown == ("B of no known tape",)
    assert table.plan_of("Q") is None
    assert table.tape_rule.endswith("one of 1, 2, 3, A, B, C, CTA, UTP")


@pytest.mark.parametrize("tape", ["B", 2, "2.0", " CTA "])
def test_a_tape_is_written_in_many_ways(tape: object) -> None:
    assert parse_table("own", TEXT).plan_of(tape) == "CTA"


@pytest.mark.parametrize(
    "codes", [[12, 37], "12,37", "[12, 37]", "['12' '37']", "12.0|37.0", ["12", "37"]]
)
def test_numbers_come_in_many_forms(codes: object) -> None:
    table = parse_table("own", "code,last,range,volume\n12,no,yes,yes\n37,yes,no,yes\n")
    assert table.rule_of(codes) == ConditionRule(Last.NO, False, True)


def test_letters_need_no_separators_and_a_number_is_none_of_them() -> None:
    table = parse_table("own", "code,last,range,volume\n1,no,no,no\n@,yes,yes,yes\n")
    assert table.rule_of("@1").last is Last.NO
    assert table.rule_of("@1").unknown == ()
    assert table.rule_of("11").unknown == ("11",)
    assert table.rule_of(None) == table.rule_of([" "]) == table.rule_of("@")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "its header has no column 'code'; a table needs code, last, range"),
        (HEAD, "has no rules"),
        (HEAD + "CTA,B,maybe,no,yes", "line 2: last 'maybe': must be one of no, first"),
        (HEAD + "CTA,B,no,,yes", "line 2: range '': must be yes or no"),
        (HEAD + "#\nCTA,B,no", "line 3: range '': must be yes or no"),
        (HEAD + "CTA,,no,no,no", "line 2: code '': must be a code"),
        (HEAD + "CTA,A B,no,no,no", "line 2: code 'A B': must be a code, without"),
        (HEAD + "C,B,no,no,no\n" * 2, "line 3: code 'B': is there twice"),
        (HEAD + '"C\n",B,no,no,no', "has over 10000 rows, or a line break in a value"),
        (f"#time-zone: Mars\n{HEAD}C,B,no,no,no", "time-zone 'Mars': must be a time"),
    ],
)
def test_a_table_with_a_fault_is_refused_with_its_line(text: str, rule: str) -> None:
    with pytest.raises(BadTable) as caught:
        parse_table("own", text)
    assert str(caught.value).startswith(rule)
