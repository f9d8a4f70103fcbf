"""Which reasons of an outage are told."""

from ingest.process.outage_reasons import MOST, OutageReasons


def test_each_reason_is_told_once_an_outage() -> None:
    """Also one that comes second; after the end it is news again."""
    reasons = OutageReasons()
    assert [reasons.is_news(r) for r in ("busy", "busy", "a cluster", "busy")] == [
        *(True, False, True, False)
    ]
    reasons.end()
    assert reasons.is_news("busy")


def test_reasons_that_are_all_different_are_not_told_for_ever() -> None:
    """Such as those that name a moment."""
    reasons = OutageReasons()
    told = [reasons.is_news(f"at {second} s") for second in range(100)]
    assert told.count(True) == MOST
