"""Views: clients that watch the same share one, and none is kept for nobody."""

import pytest

from gateway.views import EVERYTHING, NOTHING, Views

A, B, C = "KR7000000001", "KR7000000002", "KR7000000003"


def test_clients_that_watch_the_same_share_a_view() -> None:
    """In whatever order they asked."""
    views = Views()
    first = views.move(NOTHING, [B, A])
    assert (first.isins, first.is_shared) == ((A, B), False)
    assert views.move(NOTHING, {A, B}) is first
    assert first.is_shared


def test_a_view_that_nobody_watches_is_forgotten() -> None:
    """The number of views is bounded by that of the clients."""
    views = Views()
    first = views.move(NOTHING, [A])
    other = views.move(NOTHING, [A])
    moved = views.move(other, [A, C])
    assert (len(views), first.is_shared) == (2, False)
    assert views.move(moved, []) is NOTHING
    assert views.move(first, [A]) is first
    assert len(views) == 1
    views.move(first, ["*"])
    assert len(views) == 0


@pytest.mark.parametrize("keys", [["*"], [A, "*", B]])
def test_everything_is_one_view(keys: list[str]) -> None:
    """What else such a client asked for makes no difference."""
    views = Views()
    assert views.move(NOTHING, keys) is EVERYTHING
    assert EVERYTHING.is_shared
    assert len(views) == 0
