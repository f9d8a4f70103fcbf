"""Which workers stand still, and for how long a loss is shown."""

from dataclasses import replace

from gateway.admission.shared_figures import Seat, take_seat
from gateway.workers.pulse import (
    FIRST_LOOKS,
    FROZEN_LOOKS,
    LOST_LOOKS,
    Pulse,
    beat,
    lost_workers_ms,
)

NOW_MS = 1_773_964_802_000


def seats() -> tuple[Seat, Seat]:
    """Return the places of two workers."""
    first = take_seat(0, workers=2)
    return first, replace(first, worker=1)


def test_a_worker_that_stops_beating_is_frozen_once() -> None:
    """At the look that finds it out; the other one's beats are not its own."""
    own, other = seats()
    pulse = Pulse(own)
    for _ in range(3):
        beat(own)
        assert not pulse.look()
    looks = []
    for _ in range(FROZEN_LOOKS + 2):
        beat(other)
        looks.append(pulse.look())
    assert looks.index(True) == FROZEN_LOOKS - 1
    assert looks.count(True) == 1


def test_a_machine_that_stood_still_costs_no_worker() -> None:
    """The supervisor has looked once meanwhile, whatever the clock says."""
    own, _ = seats()
    pulse = Pulse(own)
    beat(own)
    looks = [pulse.look() for _ in range(FROZEN_LOOKS - 1)]
    beat(own)
    assert not any([*looks, pulse.look(), pulse.look()])


def test_a_worker_that_starts_has_longer() -> None:
    """Its first beat comes when its event loop runs."""
    own, _ = seats()
    beat(own)
    pulse = Pulse(own)
    looks = [pulse.look() for _ in range(FIRST_LOOKS)]
    assert looks == [False] * (FIRST_LOOKS - 1) + [True]
    pulse.begin()
    assert not any(pulse.look() for _ in range(FROZEN_LOOKS))


def test_a_loss_is_shown_until_the_next_process_has_lasted() -> None:
    """From the first loss, however often it was lost since."""
    own, other = seats()
    pulse = Pulse(other)
    assert lost_workers_ms(own.lost_ms) == {}
    pulse.lose(NOW_MS)
    pulse.begin()
    pulse.lose(NOW_MS + 5_000)
    pulse.begin()
    for _ in range(LOST_LOOKS):
        assert lost_workers_ms(own.lost_ms) == {1: NOW_MS}
        beat(other)
        pulse.look()
    assert lost_workers_ms(own.lost_ms) == {}
