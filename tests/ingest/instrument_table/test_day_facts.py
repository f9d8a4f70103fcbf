"""What a feed says of a day is news once, and changes nothing else."""

import pytest

from ingest.instrument_table.day_facts import DayFacts, DayNews
from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry

ISIN = "KR7005930003"


def test_facts_change_what_they_say_and_nothing_else() -> None:
    entry = InstrumentEntry(
        ISIN, "005930", "이름", prev_close="70000", status="caution"
    )
    assert DayFacts("71000").applied(entry).prev_close == "71000"
    assert DayFacts("71000").applied(entry).name == "이름"
    assert DayFacts(is_halted=False).applied(entry) == entry
    halted = DayFacts(is_halted=True).applied(entry)
    assert (halted.status, halted.prev_close) == ("halted", "70000")
    assert DayFacts(is_halted=False).applied(halted).status is None
    assert DayFacts().applied(halted) == halted


def test_a_fact_is_news_when_it_changes() -> None:
    news = DayNews()
    for close in ("70000", "70000", "70100", "70100"):
        news.note(ISIN, close, is_halted=None)
    assert news.take() == {ISIN: DayFacts("70100")}
    news.note(ISIN, "70100", is_halted=True)
    # What did not change is not said again: somebody may have loaded another close.
    assert news.take() == {ISIN: DayFacts(None, is_halted=True)}
    news.note(ISIN, None, is_halted=None)
    assert news.take() == {}


@pytest.mark.parametrize("close", ["0", "-1", "1E5", "x", "70000.0000000000000000001"])
def test_a_close_that_no_table_may_hold_is_refused(close: str) -> None:
    news = DayNews()
    with pytest.raises(BadInstruments, match="prev_close"):
        news.note(ISIN, close, is_halted=None)
    assert news.take() == {}
    news.note(ISIN, "70000", is_halted=None)
    assert news.take() == {ISIN: DayFacts("70000")}
