"""A feed to which trades come, and which takes none of them, is seen."""

from ingest.adapters.uptake import NOTHING_FOR_S, QUIET_AFTER_S, Uptake


def looks(uptake: Uptake, *states: tuple[int, int, float]) -> list[bool]:
    """Return what it tells at each look: taken, left, time."""
    return [uptake.takes_nothing(*state) for state in states]


def test_what_is_left_for_a_while_and_nothing_taken_is_told() -> None:
    """Within ten seconds, though it is looked at once a second."""
    after_s = NOTHING_FOR_S
    assert after_s + 1 < 10
    states = [(0, 0, 0.0), (0, 1, 1.0), (0, 5, after_s), (0, 6, after_s + 1)]
    assert looks(Uptake(), *states) == [False, False, False, True]


def test_one_trade_that_is_taken_ends_it() -> None:
    uptake = Uptake()
    assert looks(uptake, (0, 1, 0.0), (0, 2, 20.0), (1, 3, 21.0)) == [
        False,
        True,
        False,
    ]
    assert looks(uptake, (1, 4, 22.0), (1, 5, 25.0), (1, 6, 31.0)) == [
        *(False, False, True)
    ]


def test_a_quiet_night_after_one_odd_frame_is_no_fault() -> None:
    uptake = Uptake()
    later_s = 10.0 + QUIET_AFTER_S
    assert looks(uptake, (0, 1, 0.0), (0, 1, 10.0), (0, 1, later_s)) == [
        *(False, True, False)
    ]
    # Then it begins anew.
    assert looks(uptake, (0, 2, later_s + 1)) == [False]


def test_a_market_where_nothing_comes_takes_what_comes() -> None:
    assert not any(looks(Uptake(), *((0, 0, float(s)) for s in range(100))))
