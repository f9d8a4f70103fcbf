"""Names of companies that are not there."""

import re

from ingest.sources.company_names import NAMES, SECTORS, create_names


def test_a_market_of_any_size_has_a_name_for_each_company() -> None:
    """All names can be drawn, and are Hangul."""
    assert NAMES >= 90_000
    names = create_names("1", [SECTORS[0]] * NAMES)
    assert len(set(names)) == NAMES
    assert all(re.fullmatch("[가-힣]{3,9}", name) for name in names)


def test_the_same_chance_gives_the_same_names() -> None:
    """A seed decides them."""
    sectors = [*SECTORS]
    assert create_names("3", sectors) == create_names("3", sectors)
    assert create_names("3", sectors) != create_names("4", sectors)


def test_some_names_say_what_the_company_does() -> None:
    """Most carry a word of their sector, some none."""
    names = create_names("1", ["게임"] * 300)
    speaking = [name for name in names if name.endswith(("게임즈", "플레이"))]
    assert 150 < len(speaking) < 250
    assert all(len(name) == 3 for name in names if name not in speaking)
