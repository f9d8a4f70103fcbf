"""Reasons are told in order, each with the time it was seen first."""

from gateway.health import CODES, Finding, Health, Reason


def test_a_reason_keeps_its_beginning_while_it_lasts() -> None:
    """Its words may change."""
    health = Health()
    assert health.judge({"quiet": Finding("no trade for 6 s", 0.5)}, 1_000) == (
        Reason("quiet", "no trade for 6 s", 500),
    )
    assert health.judge({"quiet": Finding("no trade for 8 s", 2.5)}, 3_000) == (
        Reason("quiet", "no trade for 8 s", 500),
    )


def test_a_reason_that_comes_back_begins_anew() -> None:
    """The time before is over."""
    health = Health()
    health.judge({"quiet": Finding("a")}, 1_000)
    assert health.judge({}, 2_000) == ()
    assert health.judge({"quiet": Finding("b")}, 3_000)[0].since_ms == 3_000


def test_the_cause_comes_before_the_consequence() -> None:
    """Whoever reads only the first reads the right one."""
    found = dict.fromkeys(reversed(CODES), Finding("x"))
    assert [reason.code for reason in Health().judge(found, 1)] == list(CODES)
