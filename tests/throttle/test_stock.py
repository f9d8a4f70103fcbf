"""Entries counted at some marks."""

from throttle.stock import Census, Stock


def stock(gone_upto: int = -1, is_dense: bool = True) -> Stock:
    """Count entries at 3, 4, 6, 7 and 9, in two pieces."""
    census = Census([9, -1, 4, 5])
    census.add([3, 4, 6])
    census.add([])
    census.add([7, 9])
    assert census.entries == 5
    return census.take(gone_upto + 1, gone_upto, is_dense)


def test_entries_are_counted_at_every_mark() -> None:
    """A mark belongs to what is before it, be it an entry or not."""
    assert stock().counts == {-1: 0, 4: 2, 5: 2, 9: 5}
    assert stock().between(-1, 4) == 2
    assert stock().between(5, 9) == 3
    assert stock().between(9, 4) == 0
    assert stock().behind(4) == 3


def test_in_a_dense_log_what_is_left_and_no_entry_is_a_blank() -> None:
    """What is gone is neither."""
    assert stock().blanks(-1, 9) == 5
    assert stock(gone_upto=2).blanks(-1, 9) == 2
    assert stock(gone_upto=2).blanks(4, 9) == 2
    assert stock(gone_upto=20).blanks(-1, 9) == 0
    assert stock(is_dense=False).blanks(-1, 9) == 0
