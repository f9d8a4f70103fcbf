"""Which issues a request means."""

import pytest

from gateway.http.problems import Problem
from gateway.rest.selection import Wish, resolve, select
from ingest.issue_table.issue_entry import IssueEntry
from ingest.issue_table.known_issues import Issues
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG, make_isins

ISSUES = Issues(
    [
        IssueEntry(SAMSUNG, "005930", "Samsung", "KOSPI", "chips"),
        IssueEntry(HYNIX, "000660", "SK hynix", "KOSPI", "chips"),
        IssueEntry(NAVER, "035420", "NAVER", "KOSDAQ", "internet, media"),
    ]
)
NONE = Issues()


@pytest.mark.parametrize(
    ("wish", "isins"),
    [
        (Wish(), None),
        (Wish(isins=f"{SAMSUNG},{SAMSUNG}"), {SAMSUNG}),
        (Wish(isins=""), set()),
        (Wish(isins=f"005930,{SAMSUNG},000660"), {SAMSUNG, HYNIX}),
        (Wish(codes="005930,000660"), {SAMSUNG, HYNIX}),
        (Wish(market="KOSPI"), {SAMSUNG, HYNIX}),
        (Wish(sector="internet, media"), {NAVER}),
        (Wish(isins=f"{SAMSUNG},{NAVER}", market="KOSPI"), {SAMSUNG}),
        (Wish(codes="035420", sector="chips"), set()),
    ],
)
def test_what_fits_all_that_is_said(wish: Wish, isins: set[str] | None) -> None:
    """One condition more never gives more."""
    assert select(wish, ISSUES) == isins


@pytest.mark.parametrize(
    ("wish", "issues", "code", "words"),
    [
        (Wish(isins="KR7005930004"), ISSUES, "bad_isin", "check digit is 3"),
        (
            Wish(isins=",".join(make_isins(1_001))),
            ISSUES,
            "bad_request",
            "isins: 1001 are named, 1000 at most",
        ),
        (Wish(isins="*"), ISSUES, "bad_isin", "leave isins out"),
        (Wish(codes="005931"), ISSUES, "unknown_key", "codes: 005931: the code of no"),
        (Wish(isins="005931"), ISSUES, "bad_isin", "no issue has this code"),
        (Wish(codes="005930"), NONE, "unknown_key", "codes are not known here"),
        (Wish(market="KOSP"), ISSUES, "unknown_key", "KOSP: the market of no issue"),
        (Wish(sector="x" * 99), ISSUES, "unknown_key", f"{'x' * 60}...: the sector"),
    ],
)
def test_what_no_issue_is_called_is_named(
    wish: Wish, issues: Issues, code: str, words: str
) -> None:
    """The field, the value and the rule."""
    with pytest.raises(Problem) as caught:
        select(wish, issues)
    assert (caught.value.status, caught.value.code) == (400, code)
    assert words in str(caught.value)


def test_an_issue_is_named_by_isin_or_code() -> None:
    """An ISIN needs no list, a code does."""
    assert resolve(SAMSUNG, NONE) == resolve("005930", ISSUES) == SAMSUNG


@pytest.mark.parametrize(
    ("key", "issues", "status"),
    [("KR7005930004", ISSUES, 400), ("005931", ISSUES, 404), ("005930", NONE, 404)],
)
def test_a_key_that_is_none_is_refused(key: str, issues: Issues, status: int) -> None:
    """A bad ISIN is the client's fault, an unknown code may be anybody's."""
    with pytest.raises(Problem) as caught:
        resolve(key, issues)
    assert caught.value.status == status


def test_wishes_have_different_names() -> None:
    """What is left out is not what is empty."""
    wishes = [Wish(), Wish(isins=""), Wish(codes=""), Wish("a", "b"), Wish("a,b")]
    assert len({wish.encode() for wish in wishes}) == len(wishes)
