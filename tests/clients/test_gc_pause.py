"""The collector is quiet inside, and as it was outside."""

import gc

import pytest

from tickthrottle_client.gc_pause import no_collection


def test_nothing_is_collected_inside() -> None:
    """However much is made."""
    before = gc.get_stats()
    with no_collection():
        kept = [[n] for n in range(10_000)]
        assert gc.get_stats() == before
    assert len(kept) == 10_000
    assert gc.isenabled()


def test_it_is_as_it_was_whatever_happens() -> None:
    """An error, or a collector that was off before, changes nothing."""
    with pytest.raises(KeyError), no_collection():
        raise KeyError
    assert gc.isenabled()
    with no_collection():
        with no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
