"""Taking the next items while the last one is worked on."""

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")


class _End:
    """What comes after the last item."""


def read_ahead(items: Generator[T], most: int) -> Generator[T]:
    """Yield what ``items`` yields; up to ``most`` of it is taken early, in a thread.

    While a server or a library without Python's lock works on the next item, the last
    one can be worked on. An error is raised in the place of its item. ``items`` is
    closed at the end, also if not all of it was wanted.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
    with closing(items):
        try:
            taken = deque(thread.submit(_next, items) for _ in range(most))
            while not isinstance(item := taken.popleft().result(), _End):
                taken.append(thread.submit(_next, items))
                yield item
        finally:
            thread.shutdown(cancel_futures=True)


def _next(items: Generator[T]) -> T | _End:
    return next(items, _End())
