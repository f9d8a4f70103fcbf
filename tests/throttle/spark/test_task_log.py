"""Items that are taken early."""

import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.conftest import eventually
from throttle.spark.task_log import read_ahead


class Source:
    """Yields numbers, and knows how many were taken, and whether it was closed."""

    def __init__(self, upto: int, fails_at: int | None = None) -> None:
        self.taken, self.is_closed = 0, False
        self._upto, self._fails_at = upto, fails_at

    def items(self) -> Iterator[int]:
        """Yield the numbers, from 0 on."""
        try:
            for number in range(self._upto):
                if number == self._fails_at:
                    raise ValueError(number)
                self.taken += 1
                yield number
        finally:
            self.is_closed = True


@pytest.mark.parametrize("upto", [0, 1, 3, 4, 50])
def test_all_items_come_in_their_order(upto: int) -> None:
    """As without it."""
    source = Source(upto)
    assert list(read_ahead(source.items(), 3)) == list(range(upto))
    assert source.is_closed


def test_so_many_are_taken_early_and_no_more() -> None:
    """What is held is bounded."""
    source = Source(50)
    items = read_ahead(source.items(), 3)
    assert next(items) == 0
    eventually(lambda: source.taken == 4)
    assert next(items) == 1
    eventually(lambda: source.taken == 5)
    items.close()
    assert source.is_closed


def test_an_error_comes_in_the_place_of_its_item() -> None:
    """What was read before it is not lost."""
    source = Source(9, fails_at=4)
    items = read_ahead(source.items(), 3)
    assert list(islice(items, 4)) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="4"):
        next(items)
    assert source.is_closed


def test_no_thread_is_left() -> None:
    """Whether all was read or not."""
    before = threading.active_count()
    list(read_ahead(Source(5).items(), 3))
    items = read_ahead(Source(5).items(), 3)
    next(items)
    items.close()
    assert threading.active_count() == before
