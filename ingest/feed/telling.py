"""A thread beside a feed that passes on what the feed has heard; trades never wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Teller(Protocol):
    """``run`` tells until ``ended`` is set, and then once more."""

    ended: threading.Event

    def run(self) -> None: ...


@contextmanager
def telling(teller: Teller, name: str) -> Iterator[None]:
    """Run a teller in a thread of this name for as long as the block lasts."""
    thread = threading.Thread(target=teller.run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        teller.ended.set()
        thread.join()
