"""What is known of all instruments: looked up, changed, renamed."""

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.instrument_store import InstrumentChange
from ingest.instrument_table.known_instruments import Instruments
from tests.gateway.samples import HYNIX, INSTRUMENT_LIST, NAVER, SAMSUNG

LISTED = Instruments(parse_list(INSTRUMENT_LIST.splitlines(keepends=True)).instruments)


def test_an_instrument_is_found_by_isin_and_code() -> None:
    """What the list does not say is None; the order is that of ISINs."""
    hynix = InstrumentEntry(HYNIX, "000660", "SK hynix, Inc.", "KOSPI", "chips", "0.30")
    assert next(iter(LISTED)) == LISTED.get(HYNIX) == LISTED.of_code("000660") == hynix
    assert [instrument.isin for instrument in LISTED] == [HYNIX, SAMSUNG, NAVER]
    assert LISTED.isin_of("035420") == NAVER
    assert LISTED.get("KR7000000001") is LISTED.of_code("000000") is None
    assert len(LISTED) == 3


def test_of_two_instruments_with_a_code_one_has_it() -> None:
    """Changes come one by one, so for a moment two may: it is always the same one."""
    twice = [InstrumentEntry(SAMSUNG, "1"), InstrumentEntry(HYNIX, "1")]
    assert (
        Instruments(twice).isin_of("1")
        == Instruments(reversed(twice)).isin_of("1")
        == HYNIX
    )


def test_markets_and_sectors_are_sets_of_instruments() -> None:
    """One that no instrument is of is not known."""
    both = {SAMSUNG, HYNIX}
    assert LISTED.members("market:KOSPI") == LISTED.members("sector:chips") == both
    assert LISTED.members("market:kospi") is LISTED.members("sector:") is None
    assert LISTED.members("sector:internet & media") == {NAVER}
    assert LISTED.members("KOSPI") is LISTED.members("market:") is None


def test_instruments_are_found_by_parts_of_their_names() -> None:
    """Also by the beginning of a code or ISIN; capitals make no difference."""
    assert [i.isin for i in LISTED.search(" sk HYNIX")] == [HYNIX]
    assert [i.isin for i in LISTED.search("0")] == [HYNIX, SAMSUNG, NAVER]
    assert [i.isin for i in LISTED.search("kr70059")] == [SAMSUNG]
    assert [i.isin for i in LISTED.search("30003")] == []
    samsung = InstrumentEntry(
        SAMSUNG, name="삼성전자", english_name="Samsung Electronics"
    )
    assert list(Instruments([samsung]).search("전자")) == [samsung]
    assert list(Instruments([samsung]).search("electron")) == [samsung]


def test_the_digest_names_the_content() -> None:
    """The same instruments in another order are the same, any others are others."""
    one, other = InstrumentEntry(SAMSUNG), InstrumentEntry(HYNIX)
    assert Instruments([one, other]).digest == Instruments([other, one], 7).digest
    assert (
        Instruments([one]).digest
        != Instruments([InstrumentEntry(SAMSUNG, "005930")]).digest
    )


def test_changes_make_another_table() -> None:
    """The newest of an ISIN is what is known, an end takes it out."""
    halted = InstrumentEntry(SAMSUNG, "005930", market="KOSPI", status="halted")
    later = LISTED.after(
        [
            InstrumentChange(5, SAMSUNG, InstrumentEntry(SAMSUNG)),
            InstrumentChange(6, NAVER, None),
            InstrumentChange(7, SAMSUNG, halted),
            InstrumentChange(9, NAVER, None),
        ]
    )
    assert later.get(SAMSUNG) is halted
    assert [instrument.isin for instrument in later] == [HYNIX, SAMSUNG]
    assert later.version == 9
    assert len(LISTED) == 3
    assert LISTED.after([]).version == LISTED.version == 0


def _chips(hynix: str | None, samsung: str | None) -> Instruments:
    entries = [InstrumentEntry(NAVER, sector="media")]
    for isin, sector in ((HYNIX, hynix), (SAMSUNG, samsung)):
        entries += [] if sector is None else [InstrumentEntry(isin, sector=sector)]
    return Instruments(entries)


def test_what_has_other_instruments_is_found() -> None:
    """Old names and new ones; not those whose instruments only changed otherwise."""
    before = _chips("chips", "chips")
    assert before.regrouped(before.after([])) == frozenset()
    assert before.regrouped(_chips("chips", "media")) == {
        "sector:chips",
        "sector:media",
    }
    assert before.regrouped(_chips("chips", None)) == {"sector:chips"}
    assert before.regrouped(_chips("x", "x")) == {"sector:chips", "sector:x"}
    halted = InstrumentEntry(NAVER, sector="media", status="halted")
    assert before.regrouped(before.after([InstrumentChange(1, NAVER, halted)])) == set()


def test_a_name_that_all_leave_for_one_other_is_renamed() -> None:
    """Not one that is still used, that was split, or whose instruments are gone."""
    before = _chips("chips", "chips")
    renamed = {"sector:chips": "sector:semiconductors"}
    assert before.renames(_chips("semiconductors", "semiconductors")) == renamed
    assert before.renames(_chips("semiconductors", None)) == renamed
    assert before.renames(_chips("chips", "semiconductors")) == {}
    assert before.renames(_chips("memory", "logic")) == {}
    assert before.renames(_chips(None, None)) == {}
    assert before.renames(_chips("media", "media")) == {"sector:chips": "sector:media"}
    markets = Instruments([InstrumentEntry(NAVER, market="KOSDAQ")])
    moved = Instruments([InstrumentEntry(NAVER, market="KOSPI")])
    assert markets.renames(moved) == {"market:KOSDAQ": "market:KOSPI"}
