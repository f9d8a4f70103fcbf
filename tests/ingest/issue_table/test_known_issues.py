"""What is known of all issues: looked up, changed, renamed."""

from ingest.issue_table.issue_change import IssueChange
from ingest.issue_table.issue_entry import IssueEntry
from ingest.issue_table.issue_list import parse_issues
from ingest.issue_table.known_issues import Issues
from tests.gateway.samples import HYNIX, ISSUE_LIST, NAVER, SAMSUNG

LISTED = Issues(parse_issues(ISSUE_LIST.splitlines(keepends=True)))


def test_an_issue_is_found_by_isin_and_code() -> None:
    """What the list does not say is None; the order is that of ISINs."""
    hynix = IssueEntry(HYNIX, "000660", "SK hynix, Inc.", "KOSPI", "chips", "0.30")
    assert next(iter(LISTED)) == LISTED.get(HYNIX) == LISTED.of_code("000660") == hynix
    assert [issue.isin for issue in LISTED] == [HYNIX, SAMSUNG, NAVER]
    assert LISTED.isin_of("035420") == NAVER
    assert LISTED.get("KR7000000001") is LISTED.of_code("000000") is None
    assert len(LISTED) == 3


def test_of_two_issues_with_a_code_one_has_it() -> None:
    """Changes come one by one, so for a moment two may: it is always the same one."""
    twice = [IssueEntry(SAMSUNG, "1"), IssueEntry(HYNIX, "1")]
    assert Issues(twice).isin_of("1") == Issues(reversed(twice)).isin_of("1") == HYNIX


def test_markets_and_sectors_are_sets_of_issues() -> None:
    """One that no issue is of is not known."""
    assert LISTED.of_market("KOSPI") == LISTED.of_sector("chips") == {SAMSUNG, HYNIX}
    assert LISTED.of_market("kospi") is LISTED.of_sector("") is None
    assert LISTED.members("market:KOSPI") == LISTED.members("sector:chips")
    assert LISTED.members("sector:internet & media") == {NAVER}
    assert LISTED.members("KOSPI") is LISTED.members("market:") is None


def test_issues_are_found_by_parts_of_their_names() -> None:
    """Also by the beginning of a code or ISIN; capitals make no difference."""
    assert [i.isin for i in LISTED.search(" sk HYNIX")] == [HYNIX]
    assert [i.isin for i in LISTED.search("0")] == [HYNIX, SAMSUNG, NAVER]
    assert [i.isin for i in LISTED.search("kr70059")] == [SAMSUNG]
    assert [i.isin for i in LISTED.search("30003")] == []
    samsung = IssueEntry(SAMSUNG, name="삼성전자", english_name="Samsung Electronics")
    assert list(Issues([samsung]).search("전자")) == [samsung]
    assert list(Issues([samsung]).search("electron")) == [samsung]


def test_the_digest_names_the_content() -> None:
    """The same issues in another order are the same, any others are others."""
    one, other = IssueEntry(SAMSUNG), IssueEntry(HYNIX)
    assert Issues([one, other]).digest == Issues([other, one], 7).digest
    assert Issues([one]).digest != Issues([IssueEntry(SAMSUNG, "005930")]).digest


def test_changes_make_another_table() -> None:
    """The newest of an ISIN is what is known, an end takes it out."""
    halted = IssueEntry(SAMSUNG, "005930", market="KOSPI", status="halted")
    later = LISTED.after(
        [
            IssueChange(5, SAMSUNG, IssueEntry(SAMSUNG)),
            IssueChange(6, NAVER, None),
            IssueChange(7, SAMSUNG, halted),
            IssueChange(9, NAVER, None),
        ]
    )
    assert later.get(SAMSUNG) is halted
    assert [issue.isin for issue in later] == [HYNIX, SAMSUNG]
    assert later.version == 9
    assert len(LISTED) == 3
    assert LISTED.after([]).version == LISTED.version == 0


def _chips(hynix: str | None, samsung: str | None) -> Issues:
    entries = [IssueEntry(NAVER, sector="media")]
    for isin, sector in ((HYNIX, hynix), (SAMSUNG, samsung)):
        entries += [] if sector is None else [IssueEntry(isin, sector=sector)]
    return Issues(entries)


def test_what_has_other_issues_is_found() -> None:
    """Old names and new ones; not those whose issues only changed otherwise."""
    before = _chips("chips", "chips")
    assert before.regrouped(before.after([])) == frozenset()
    assert before.regrouped(_chips("chips", "media")) == {
        "sector:chips",
        "sector:media",
    }
    assert before.regrouped(_chips("chips", None)) == {"sector:chips"}
    assert before.regrouped(_chips("x", "x")) == {"sector:chips", "sector:x"}
    halted = IssueEntry(NAVER, sector="media", status="halted")
    assert before.regrouped(before.after([IssueChange(1, NAVER, halted)])) == set()


def test_a_name_that_all_leave_for_one_other_is_renamed() -> None:
    """Not one that is still used, that was split, or whose issues are gone."""
    before = _chips("chips", "chips")
    renamed = {"sector:chips": "sector:semiconductors"}
    assert before.renames(_chips("semiconductors", "semiconductors")) == renamed
    assert before.renames(_chips("semiconductors", None)) == renamed
    assert before.renames(_chips("chips", "semiconductors")) == {}
    assert before.renames(_chips("memory", "logic")) == {}
    assert before.renames(_chips(None, None)) == {}
    assert before.renames(_chips("media", "media")) == {"sector:chips": "sector:media"}
    markets = Issues([IssueEntry(NAVER, market="KOSDAQ")])
    moved = Issues([IssueEntry(NAVER, market="KOSPI")])
    assert markets.renames(moved) == {"market:KOSDAQ": "market:KOSPI"}
