"""Key sets: clients that watch the same share one, and none is kept for nobody."""

from gateway.protocol.key_sets import EVERYTHING, NOTHING, InstrumentNumbers, KeySets

A, B, C = "KR7000000001", "KR7000000002", "KR7000000003"


def test_clients_that_watch_the_same_share_a_view() -> None:
    """In whatever order they asked."""
    key_sets = KeySets(InstrumentNumbers())
    first = key_sets.move(NOTHING, [B, A])
    assert (first.isins, first.is_shared) == ((A, B), False)
    assert key_sets.move(NOTHING, {A, B}) is first
    assert first.is_shared


def test_a_view_that_nobody_watches_is_forgotten() -> None:
    """The number of key sets is bounded by that of the clients."""
    key_sets = KeySets(InstrumentNumbers())
    first = key_sets.move(NOTHING, [A])
    other = key_sets.move(NOTHING, [A])
    moved = key_sets.move(other, [A, C])
    assert (len(key_sets), first.is_shared) == (2, False)
    assert key_sets.move(moved, []) is NOTHING
    assert key_sets.move(first, [A]) is first
    assert len(key_sets) == 1
    key_sets.move(first, ["*"])
    assert len(key_sets) == 0


def test_everything_is_one_view() -> None:
    """What else such a client asked for makes no difference."""
    cases: list[list[str]] = [["*"], [A, "*", B]]
    for keys in cases:
        key_sets = KeySets(InstrumentNumbers())
        assert key_sets.move(NOTHING, keys) is EVERYTHING
        assert EVERYTHING.is_shared
        assert len(key_sets) == 0


def test_a_key_set_picks_its_instruments_in_order_of_isins() -> None:
    """Whatever numbers they have, also those that got theirs later."""
    numbers = InstrumentNumbers()
    key_sets = KeySets(numbers)
    both, one = key_sets.move(NOTHING, [A, C]), key_sets.move(NOTHING, [C])
    assert both.pick([]) == one.pick([]) == NOTHING.pick([]) == []
    assert (numbers[C], numbers[B]) == (0, 1)
    assert both.pick([b"c", b"b"]) == one.pick([b"c", b"b"]) == [b"c"]
    assert numbers[A] == 2
    assert both.pick([b"c", None, b"a"]) == [b"a", b"c"]
    assert both.pick([None, b"b", None]) == one.pick([None, b"b", None]) == []


def test_only_what_is_published_gets_a_number() -> None:
    """What strangers watch makes nothing grow."""
    numbers = InstrumentNumbers()
    KeySets(numbers).move(NOTHING, [A, B])
    assert len(numbers) == 0
    assert [numbers[B], numbers[A], numbers[B]] == [0, 1, 0]
