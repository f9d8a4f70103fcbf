"""How figures are worded."""

from loadtest.figures import words


def test_a_duration_is_as_coarse_as_it_is_long() -> None:
    """Milliseconds where they matter, minutes where they do not."""
    texts = {
        **{None: words.NONE, 0: "0 ms", 0.04: "0.0 ms", 3.26: "3.3 ms", 9.96: "10 ms"},
        **{250.4: "250 ms", 2_310: "2,310 ms", 9_996: "10.0 s", 61_240: "61.2 s"},
        **{119_700: "2 min 00 s", 754_000: "12 min 34 s", 93_600_000: "26 h 00 min"},
    }
    assert {ms: words.duration(ms) for ms in texts} == texts


def test_a_size_has_the_largest_fitting_unit() -> None:
    """Three digits or fewer, but where units end."""
    texts = {None: words.NONE, 0: "0 B", 999: "999 B", 1_000: "1.0 KiB"}
    texts |= {52_000: "51 KiB", 2**20 * 820: "820 MiB", 2**50 * 3: "3072 TiB"}
    assert {amount: words.size(amount) for amount in texts} == texts


def test_counts_rates_shares_and_factors() -> None:
    """Thousands stand apart; what is small keeps a decimal."""
    assert words.count(1_234_567.4) == "1,234,567"
    assert words.plural(1, "client") == "1 client"
    assert words.plural(2_000, "client") == "2,000 clients"
    assert words.rate(0) == "0"
    assert words.rate(3.14) == "3.1"
    assert words.rate(4) == "4"
    assert words.rate(50_000) == "50,000"
    assert words.cores(1.234) == "123%"
    assert words.ratio(3.68) == "3.7"
    assert words.ratio(412.3) == "412"
    assert {words.count(None), words.rate(None), words.cores(None)} == {words.NONE}
    assert words.ratio(None) == words.NONE
