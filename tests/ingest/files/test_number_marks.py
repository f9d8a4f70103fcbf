"""Numbers with marks: which are read, and which are no such numbers."""

import pytest

from ingest.files.number_marks import number_cleaner


@pytest.mark.parametrize(
    ("thousands", "decimal_mark", "text", "plain"),
    [
        (",", ".", "71,900", "71900"),
        (",", ".", "71900", "71900"),
        (",", ".", "-5,969,782,550.25", "-5969782550.25"),
        (",", ".", "12,34,567.5", "1234567.5"),
        (".", ",", "1.234.567,50", "1234567.50"),
        ("", ",", "0,30", "0.30"),
        ("'", ".", "1'234.5", "1234.5"),
        (" ", ",", "1\u202f234\u00a0567,5", "1234567.5"),
        (",", ".", "6E-8", "6E-8"),
        (",", ".", "n/a", "n/a"),
    ],
)
def test_a_number_loses_its_marks_and_no_digit(
    thousands: str, decimal_mark: str, text: str, plain: str
) -> None:
    """What has no marks stays, whatever it is."""
    clean = number_cleaner(thousands, decimal_mark)
    assert clean is not None
    assert clean(text) == plain


@pytest.mark.parametrize(
    ("thousands", "decimal_mark", "text"),
    [
        (",", ".", "71,9"),
        (",", ".", ",900"),
        (",", ".", "71,900,"),
        (",", ".", "1.000,5"),
        (".", ",", "71.9"),
        ("", ",", "71.900"),
        (",", ".", "1234,567"),
    ],
)
def test_a_mark_elsewhere_is_no_number(
    thousands: str, decimal_mark: str, text: str
) -> None:
    """71,9 never becomes 719."""
    clean = number_cleaner(thousands, decimal_mark)
    assert clean is not None
    with pytest.raises(ValueError, match="has "):
        clean(text)


def test_plain_numbers_need_nothing() -> None:
    """So the usual path does nothing."""
    assert number_cleaner("", ".") is None
