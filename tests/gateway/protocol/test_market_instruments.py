"""What a gateway of one market knows and serves."""

from gateway.protocol.market_instruments import MarketInstruments
from gateway.protocol.messages import split_keys
from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
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

KOSPI = MarketInstruments(LISTED, "KOSPI")
[UNHEARD_OF] = make_isins(1)


def test_it_is_the_table_of_its_instruments() -> None:
    """A sector stands for those of the market; another market's change is no news."""
    wide = Instruments(
        [*LISTED, InstrumentEntry(UNHEARD_OF, market="KOSDAQ", sector="chips")], 9
    )
    instruments = MarketInstruments(wide, "KOSPI")
    assert [instrument.isin for instrument in instruments] == [HYNIX, SAMSUNG]
    assert instruments.members("sector:chips") == {HYNIX, SAMSUNG}
    assert instruments.isin_of("005930") == SAMSUNG
    assert (instruments.digest, instruments.version) == (KOSPI.digest, 9)


def test_its_own_keys_and_those_of_nobody_are_no_others() -> None:
    """What an unknown key is worth, others decide."""
    cases: list[str] = [
        *("*", SAMSUNG, "000660", "market:KOSPI", "sector:chips", UNHEARD_OF),
        *("group:*", "group:market:KOSPI", "sector:of nobody", "garbage"),
    ]
    for key in cases:
        assert KOSPI.refusal(key) is None


def test_others_keys_are_refused_with_a_sentence() -> None:
    """It says what is served."""
    cases: list[str] = [
        *(NAVER, "035420", "market:KOSDAQ", "market:X", "sector:internet & media"),
        *("group:market:KOSDAQ", "group:sector:chips", "group:market:"),
    ]
    for key in cases:
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
    assert MarketInstruments(Instruments(), "KOSPI").part_of(whole).rows == ()
