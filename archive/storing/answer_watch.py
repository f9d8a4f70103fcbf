"""Notices a call that neither returns nor fails."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watched(every_s: float, on_silence: Callable[[float], None]) -> Iterator[None]:
    """Call something in this block; ``on_silence`` is told how long it has taken.

    Again and again after every ``every_s`` seconds, in another thread, never once the
    block has ended.
    """
    answered = threading.Event()

    def run() -> None:
        silent_s = 0.0
        while not answered.wait(every_s):
            silent_s += every_s
            on_silence(silent_s)

    thread = threading.Thread(target=run, name="answer watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        answered.set()
        thread.join()
