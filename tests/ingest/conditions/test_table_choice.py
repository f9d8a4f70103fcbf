"""A table and the fields that its codes are in, as one text."""

import pytest

from ingest.conditions.table_choice import TableChoice


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("krx", ("conditions", "tape", "exchange", False)),
        ("krx:c", ("c", "tape", "exchange", False)),
        ("us_equities: c : z", ("c", "z", "exchange", False)),
        ("us_equities:c::x", ("c", "tape", "x", True)),
    ],
)
def test_names_that_are_left_out_are_the_usual_ones(
    text: str, fields: tuple[str, str, str, bool]
) -> None:
    choice = TableChoice.parse(text)
    assert (choice.codes, choice.tape, choice.market, choice.names_market) == fields
    assert choice.table.name == text.partition(":")[0]
    assert str(choice) == text


@pytest.mark.parametrize("text", ["", ":c", "krx:a:b:c:d"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a table and the fields of codes"):
        TableChoice.parse(text)
