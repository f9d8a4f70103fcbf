"""What has to be looked at, and when."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.stream.timer_wheel import TimerWheel

TICK_S = 0.5
TIMES = st.floats(0, 60, allow_nan=False)


@given(st.lists(TIMES), st.lists(TIMES))
def test_nothing_is_early_and_nothing_later_than_a_tick(
    timers: list[float], looks: list[float]
) -> None:
    """Each timer comes once, at the first look a tick after its time or before that."""
    wheel: TimerWheel[float] = TimerWheel(TICK_S, 0.0)
    for at_s in timers:
        wheel.add(at_s, at_s)
    waiting = sorted(timers)
    for now_s in [*sorted(looks), 61.0]:
        for at_s in sorted(wheel.due(now_s)):
            assert at_s <= now_s
            waiting.remove(at_s)
        assert all(at_s > now_s - TICK_S for at_s in waiting)
    assert waiting == []


def test_what_is_added_during_a_look_comes_at_a_later_one() -> None:
    """Also if its time is over: a look always ends."""
    wheel: TimerWheel[str] = TimerWheel(TICK_S, 10.0)
    wheel.add("a", 9.0)
    for timer in wheel.due(10.6):
        wheel.add(timer, 0.0)
    assert list(wheel.due(10.7)) == []
    assert list(wheel.due(11.2)) == ["a"]
