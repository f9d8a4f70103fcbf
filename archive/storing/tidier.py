"""Tidies an archive in a thread of its own: nothing that is stored waits for it."""

import threading
from collections.abc import Callable
from time import monotonic

import pyarrow as pa
import structlog

from archive.storing.archive_sink import Sink

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 600.0

PATIENCE_S = 10.0
"""What is being tidied at the end may go on for this long."""

log = structlog.get_logger()


def give_back() -> None:
    """Return the unused memory of Arrow's pool to the system; to be called by its user.

    An archive works for a moment in a minute. What its pool keeps meanwhile is 75 MiB,
    and grows for an hour and more (``bench/README.md``).
    """
    pa.default_memory_pool().release_unused()


class TidyStopped(Exception):
    """The archive ends: what was being done is not finished, and not there."""


class Tidier:
    """Merges segments, removes old days and sets damaged files aside.

    A context manager. ``ask`` has it look whether there is something to do, at the
    latest. A failure is logged, counted in ``failures``, named by ``problem`` and tried
    again, after pauses that double; it ends nothing. ``has_set_aside`` is called, in
    this thread, once something was taken away from what is stored.
    """

    def __init__(
        self,
        sink: Sink,
        newest_ms: Callable[[], int],
        has_set_aside: Callable[[], None],
    ) -> None:
        self._sink = sink
        self._newest_ms = newest_ms
        self._has_set_aside = has_set_aside
        self._pause_s = FIRST_PAUSE_S
        self._asked = threading.Event()
        self._closing = threading.Event()
        self._retry_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="tidier", daemon=True)
        self.failures = 0
        self.problem: str | None = None
        self.death: BaseException | None = None
        """What it died of, which nothing but a defect or a test is."""

    def __enter__(self) -> "Tidier":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it; a merge ends between two groups of rows."""
        self._closing.set()
        self._asked.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            self._sink.interrupt()
            self._thread.join()

    def ask(self) -> None:
        self._asked.set()

    def _run(self) -> None:
        try:
            while self._wait():
                self._tidy()
        except TidyStopped:
            return
        except BaseException as error:  # noqa: BLE001 - its owner raises it
            self.death = error

    def _wait(self) -> bool:
        """Wait until there may be something to do; False if it shall end."""
        if self._retry_s is None:
            self._asked.wait()
        else:
            # Asked or not: what failed is tried again when its pause is over.
            self._closing.wait(max(0.0, self._retry_s - monotonic()))
        self._asked.clear()
        return not self._closing.is_set()

    def _tidy(self) -> None:
        try:
            while True:
                before = len(self._sink.damaged())
                done = self._sink.tidy(self._newest_ms(), self._go_on)
                give_back()
                if done is None:
                    break
                if len(self._sink.damaged()) > before:
                    log.error("a damaged segment of the archive", done=done)
                    self._has_set_aside()
                else:
                    log.info("the archive was tidied", done=done)
        except TidyStopped:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, storing goes on
            self._failed(error)
        else:
            self._retry_s, self.problem = None, None
            self._pause_s = FIRST_PAUSE_S

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.problem = " ".join(str(error).split()) or repr(error)
        log.warning(
            "the archive cannot be tidied",
            error=self.problem,
            failures=self.failures,
            again_s=self._pause_s,
        )
        self._retry_s = monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _go_on(self) -> None:
        if self._closing.is_set():
            raise TidyStopped
