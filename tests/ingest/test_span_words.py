"""Spans of time in words."""

import pytest

from ingest.span_words import span_words


@pytest.mark.parametrize(
    ("span_us", "words"),
    [
        (500, "0.5 ms"),
        (999_000, "999 ms"),
        (1_000_000, "1 second"),
        (2_500_000, "2.5 seconds"),
        (90_000_000, "1.5 minutes"),
        (3_600_000_000, "1 hour"),
        (2_592_000_000_000, "30 days"),
        (820_454_400_000_000, "26 years"),
    ],
)
def test_a_span_is_said_in_its_largest_unit(span_us: int, words: str) -> None:
    assert span_words(span_us) == words
