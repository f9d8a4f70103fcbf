"""Who goes when there are too many connections that are no streams."""

from gateway.admission.connections import PlainConnections


def make_connections(
    most: int = 3, most_per_address: int = 2, room: int = 100
) -> PlainConnections[str]:
    """Return an account of connections that are letters."""
    return PlainConnections(most, most_per_address, room)


def test_the_one_that_has_waited_longest_goes() -> None:
    """A stranger who opens many connections cuts off his own."""
    plain = make_connections()
    assert [plain.enter(name, name, 0) for name in "abc"] == [None, None, None]
    assert plain.enter("d", "d", 0) == "a"
    assert plain.enter("e", "e", 0) == "b"
    assert len(plain) == 3


def test_an_address_has_its_own_limit() -> None:
    """Nobody else has to go for it."""
    plain = make_connections()
    plain.enter("a", "other", 0)
    plain.enter("b", "here", 0)
    plain.enter("c", "here", 0)
    assert plain.enter("d", "here", 0) == "b"
    assert plain.enter("e", "here", 0) == "c"


def test_who_is_being_answered_stays() -> None:
    """If all are, the new one goes; when it waits again, it is the last in line."""
    plain = make_connections()
    for name in "abc":
        plain.enter(name, name, 0)
    plain.answer("a")
    assert plain.enter("d", "d", 0) == "b"
    plain.answer("c")
    plain.answer("d")
    assert plain.enter("e", "e", 0) == "e"
    assert len(plain) == 3
    plain.wait("a", "a")
    plain.wait("c", "c")
    assert plain.enter("f", "f", 0) == "a"


def test_streams_leave_room_for_nobody_else() -> None:
    """All connections together have to fit into what the system allows."""
    plain = make_connections(most=10, most_per_address=10, room=5)
    assert plain.enter("a", "a", 4) is None
    assert plain.enter("b", "b", 5) == "a"
    plain.answer("b")
    assert plain.enter("c", "c", 5) == "c"
    assert plain.enter("c", "c", 5, spare=1) is None


def test_who_leaves_makes_room_once() -> None:
    """A stream that begins leaves, and leaves again when it ends."""
    plain = make_connections(most=1)
    plain.enter("a", "a", 0)
    plain.answer("a")
    for _ in range(3):
        plain.leave("a")
    assert len(plain) == 0
    assert plain.enter("b", "a", 0) is None
    assert plain.enter("c", "c", 0) == "b"
    assert (plain._tally.total, plain._waiting_at) == (1, {"c": {"c": None}})


def test_a_connection_whose_answer_is_put_off_may_go() -> None:
    """But it does not come back into the account once it has left."""
    plain = make_connections()
    for name in "abc":
        plain.enter(name, name, 0)
        plain.answer(name)
    plain.put_off("b")
    assert plain.enter("d", "d", 0) == "b"
    plain.put_off("b")
    assert len(plain) == 3
    plain.answer("d")
    plain.put_off("c")
    plain.answer("c")
    assert plain.enter("e", "e", 0) == "e"
