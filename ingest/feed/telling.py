"""A thread beside a feed that passes on what the feed has heard; trades never wait."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def telling(run: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run ``run`` in a thread: it tells until the event is set, and then once more."""
    ended = threading.Event()
    thread = threading.Thread(target=run, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
