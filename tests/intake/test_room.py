"""Room for requests: one sender never takes what others need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intake.room import Full, Reservation, Room

KIB = 1_024


def fill(room: Room, *senders: str, size: int = KIB) -> list[Reservation]:
    """Reserve places of one size until there is no more room for these senders."""
    places = []
    while True:
        try:
            places.append(room.reserve(senders, size))
        except Full:
            return places


def test_one_greedy_sender_gets_half_and_another_gets_in() -> None:
    room = Room(64 * KIB)
    assert len(fill(room, "greedy")) == 32
    assert len(fill(room, "second")) == 16
    room.reserve(["modest"], KIB)


def test_an_address_with_many_tokens_is_one_sender_and_so_is_a_token() -> None:
    """Neither tokens of one address nor addresses of one token add up."""
    room = Room(64 * KIB)
    by_tokens = sum(len(fill(room, "address", f"token {n}")) for n in range(9))
    assert by_tokens == 32
    by_addresses = sum(len(fill(room, f"address {n}", "token")) for n in range(9))
    assert by_addresses == 16


def test_what_is_given_back_can_be_had_again() -> None:
    room = Room(64 * KIB)
    for place in fill(room, "greedy"):
        place.leave()
        place.leave()
    assert room.bytes == 0
    assert len(fill(room, "greedy")) == 32


def test_a_request_alone_may_be_of_any_size() -> None:
    room = Room(KIB)
    place = room.reserve(["one"], 2 * KIB)
    place.resize(3 * KIB)
    with pytest.raises(Full):
        room.reserve(["two"], 1)
    place.resize(1)
    assert room.bytes == 1


def test_a_place_that_cannot_grow_holds_what_it_held() -> None:
    room = Room(4 * KIB)
    place = room.reserve(["one"], KIB)
    room.reserve(["two"], KIB)
    with pytest.raises(Full):
        place.resize(4 * KIB)
    assert room.bytes == 2 * KIB
    place.leave()
    assert room.bytes == KIB


SENDERS = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(SENDERS, SENDERS, st.integers(0, 20)), max_size=60))
def test_the_bound_holds_and_the_sums_fit(
    steps: list[tuple[str, str, int]],
) -> None:
    """Whatever comes and goes: never over the bound but for a request alone."""
    room, places = Room(50), []
    for first, second, size in steps:
        if size == 0 and places:
            places.pop(0).leave()
            continue
        try:
            places.append(room.reserve([first, second], size))
        except Full:
            assert places
        assert room.bytes <= 50
    for place in places:
        place.leave()
    assert room.bytes == 0
