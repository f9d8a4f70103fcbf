"""What a gateway of one market knows and serves."""

import pytest

from gateway.protocol.market_issues import MarketIssues
from gateway.protocol.messages import split_keys
from ingest.issue_table.issue_entry import IssueEntry
from ingest.issue_table.known_issues import Issues
from tests.gateway.samples import (
    HYNIX,
    LISTED,
    NAVER,
    SAMSUNG,
    make_group,
    make_isins,
    make_row,
    make_snapshot,
)

KOSPI = MarketIssues(LISTED, "KOSPI")
[UNHEARD_OF] = make_isins(1)


def test_it_is_the_table_of_its_issues() -> None:
    """A sector stands for those of the market; another market's change is no news."""
    wide = Issues([*LISTED, IssueEntry(UNHEARD_OF, market="KOSDAQ", sector="chips")], 9)
    issues = MarketIssues(wide, "KOSPI")
    assert [issue.isin for issue in issues] == [HYNIX, SAMSUNG]
    assert issues.members("sector:chips") == {HYNIX, SAMSUNG}
    assert issues.isin_of("005930") == SAMSUNG
    assert (issues.digest, issues.version) == (KOSPI.digest, 9)


@pytest.mark.parametrize(
    "key",
    [
        *("*", SAMSUNG, "000660", "market:KOSPI", "sector:chips", UNHEARD_OF),
        *("group:*", "group:market:KOSPI", "sector:of nobody", "garbage"),
    ],
)
def test_its_own_keys_and_those_of_nobody_are_no_others(key: str) -> None:
    """What an unknown key is worth, others decide."""
    assert KOSPI.refusal(key) is None


@pytest.mark.parametrize(
    "key",
    [
        *(NAVER, "035420", "market:KOSDAQ", "market:X", "sector:internet & media"),
        *("group:market:KOSDAQ", "group:sector:chips", "group:market:"),
    ],
)
def test_others_keys_are_refused_with_a_sentence(key: str) -> None:
    """It says what is served."""
    accepted, [rejection] = split_keys([SAMSUNG, key], KOSPI)
    assert accepted == [SAMSUNG]
    assert (rejection.key, rejection.code) == (key, "not_served")
    assert "KOSPI alone is served here" in rejection.message


def test_keys_that_were_known_elsewhere_are_refused_all_the_same() -> None:
    """A gateway remembers good keys; which are served is another question."""
    assert split_keys([NAVER], LISTED) == ([NAVER], [])
    accepted, [rejection] = split_keys([NAVER], KOSPI)
    assert (accepted, rejection.key) == ([], NAVER)


def test_of_a_window_it_takes_the_rows_and_the_group_of_the_market() -> None:
    """As the market's own channel brings them; quiet windows, too."""
    groups = [make_group(f"market:{name}") for name in ("KOSDAQ", "KOSPI")]
    rows = [make_row(isin) for isin in (SAMSUNG, NAVER, UNHEARD_OF)]
    whole = make_snapshot(7, *rows, groups=[*groups, make_group("sector:chips")])
    part = KOSPI.part_of(whole)
    assert [row.isin for row in part.rows] == [SAMSUNG]
    assert [group.key for group in part.groups] == ["group:market:KOSPI"]
    assert (part.offset, part.window) == (whole.offset, whole.window)
    assert MarketIssues(Issues(), "KOSPI").part_of(whole).rows == ()
