"""When a connection is ended, and in which words."""

from gateway.admission.bounds import Bounds
from gateway.admission.tokens import EVERYTHING
from gateway.stream.lifetimes import DueEnd, Lifetime
from tests.gateway.samples import make_board, make_commands
from tickthrottle_client.tick_v1 import CloseCode

BOUNDS = Bounds(auth_s=5, first_keys_s=30, slow_close_s=15)


def due_end(now_s: float, *, is_stuck: bool = False, **said: object) -> DueEnd | None:
    """Return how a connection that began at 0 ends now; ``said`` is what it did."""
    commands = make_commands(make_board())
    for name, value in said.items():
        setattr(commands, name, value)
    lifetime = Lifetime(0.0, BOUNDS, 100.0)
    return lifetime.due_end(commands, now_s, is_stuck=is_stuck)


def test_a_client_that_asks_and_reads_stays_until_it_is_old() -> None:
    """Then it is asked to come back."""
    assert due_end(99.9, has_asked=True) is None
    old = due_end(100.0, has_asked=True)
    assert old == DueEnd(CloseCode.RESTART, "the stream is old", "clients_retired")


def test_a_slow_client_is_closed_whatever_else_is_due() -> None:
    """It is told first what helps it most."""
    stuck = due_end(100.0, is_stuck=True, grant=None)
    assert stuck is not None
    assert (stuck.code, stuck.reason) == (
        CloseCode.SLOW,
        "nothing was read for 15 s",
    )


def test_a_client_shows_its_token_and_asks_in_time() -> None:
    """And a token that has expired ends it."""
    assert due_end(4.9, grant=None) is None
    refused, idle = due_end(5.0, grant=None), due_end(30.0, grant=EVERYTHING)
    expired = due_end(7.0, has_asked=True, expires_s=7.0)
    assert refused is not None
    assert idle is not None
    assert expired is not None
    assert [end.code for end in (refused, idle, expired)] == [
        CloseCode.TOKEN_REFUSED,
        CloseCode.POLICY,
        CloseCode.TOKEN_EXPIRED,
    ]


def test_what_waits_for_its_turn_is_not_late() -> None:
    """A neighbour at the address may make it wait; the stream grows old meanwhile."""
    commands = make_commands(make_board())
    commands.grant = None
    lifetime = Lifetime(0.0, BOUNDS, 100.0)
    lifetime.begin_wait(4.0)
    assert lifetime.due_end(commands, 60.0, is_stuck=False) is None
    assert lifetime.next_end_s(commands, 60.0) == 61.0
    lifetime.end_wait(60.0)
    lifetime.begin_wait(60.5)
    lifetime.end_wait(80.0)
    assert lifetime.next_end_s(commands, 80.0) == 80.5
    refused = lifetime.due_end(commands, 80.5, is_stuck=False)
    assert refused is not None
    assert refused.code == CloseCode.TOKEN_REFUSED
    commands.grant = EVERYTHING
    lifetime.begin_wait(81.0)
    old = lifetime.due_end(commands, 100.0, is_stuck=False)
    assert old is not None
    assert old.code == CloseCode.RESTART
