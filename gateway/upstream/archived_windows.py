"""Reads the archive, if there is one: what is older than Redis remembers.

Its library is loaded with the first question only: it takes some memory.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import structlog

from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Product
from archive.parquet.segment_folder import bars_root, damaged_root
from gateway.admission.turns import Turns
from gateway.protocol.market_instruments import served_part
from gateway.upstream.archive_visit import current_visit
from ingest.instrument_table.known_instruments import Instruments
from throttle.contract.bars import Bar
from throttle.contract.snapshot import WindowSnapshot

if TYPE_CHECKING:
    from archive.parquet.archive_reader import ArchivedPoint, ArchiveReader
    from archive.parquet.bar_reader import BarReader

    History = tuple[int, list[ArchivedPoint], list[ArchiveGap]]

T = TypeVar("T")

AT_ONCE = 2
"""This many questions are read for at a time; others wait for their turn."""

MOST_WAITING, MOST_WAITING_EACH = 256, 64
"""Questions that wait for their turn, in all and of one address."""

END_OF_TIME_MS = 2**53

_UNEXPECTED = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)

log = structlog.get_logger()


class ArchiveUnreadable(RuntimeError):
    """Nothing of the archive can be read; the log says why, the message to nobody."""

    def __init__(self) -> None:
        super().__init__("the archive cannot be read at the moment")


class ArchivedWindows:
    """The archive in a folder; without one it is empty. Raises ArchiveUnreadable.

    A damaged file is left out of answers, and among the gaps of its time. Addresses
    take turns (``archive_visit.py`` says whose question it is). Raises NoTurn where too
    many wait.

    ``instruments`` returns what is served now: of one market's gateway, that market's
    part.
    """

    def __init__(
        self, folder: Path | None, instruments: Callable[[], Instruments] = Instruments
    ) -> None:
        self._folder = folder
        self._instruments = instruments
        self._windows: ArchiveReader | None = None
        self._bars: BarReader | None = None
        self._turns = Turns(AT_ONCE, MOST_WAITING, MOST_WAITING_EACH)
        self._fault: str | None = None

    async def history(
        self, isin: str, from_ms: int | None, to_ms: int | None, limit: int
    ) -> "History":
        """Return up to ``limit`` windows of an instrument, oldest first, in one turn.

        The oldest ones since ``from_ms``, or without it the newest. Before them, the
        end of the newest window there is, 0 without one; after them, what the archive
        does not have between the two moments.
        """
        if self._folder is None:
            return 0, [], []
        bounds = _bounds(from_ms, to_ms)

        def read(reader: "ArchiveReader") -> "History":
            last_ms = max((s.last_ms for s in reader.segments()), default=0)
            points = reader.points(isin, *bounds, limit, newest=from_ms is None)
            return last_ms, points, reader.gaps(*bounds)

        return await self._ask(read)

    async def bars(
        self, isin: str, width_ms: int, first_ms: int, last_ms: int, limit: int
    ) -> list[Bar]:
        """Return an instrument's newest ``limit`` closed bars of a width, oldest first.

        Both bounds are of their starts, and included. How many days are looked at is
        bounded (``bar_reader.MOST_DAYS``).
        """
        if self._folder is None:
            return []
        bounds = width_ms, first_ms, last_ms, limit
        return await self._in_turn(lambda: self._open_bars().newest(isin, *bounds))

    async def damaged(
        self, product: Product, from_ms: int | None, to_ms: int | None
    ) -> list[ArchiveGap]:
        """Return what of a product cannot be read between two moments.

        Where nothing is damaged, nobody waits for a turn.
        """
        folder, is_of_windows = self._folder, product == "windows"
        if folder is None:
            return []
        root = folder if is_of_windows else bars_root(folder)
        reader = self._windows if is_of_windows else self._bars
        if not damaged_root(root).exists() and not (reader and reader.damage()):
            return []

        def read() -> list[ArchiveGap]:
            reader = self._open() if is_of_windows else self._open_bars()
            return [
                gap for gap in reader.gaps(*_bounds(from_ms, to_ms)) if gap.is_damage
            ]

        return await self._in_turn(read)

    def damage(self) -> list[str]:
        """Return what is wrong with each file that could not be read, for operators."""
        readers = (self._windows, self._bars)
        return [words for reader in readers if reader for words in reader.damage()]

    async def newest(
        self, from_ms: int | None, to_ms: int | None
    ) -> AsyncIterator[WindowSnapshot]:
        """Yield windows, the newest first, one by one as they are taken."""
        if self._folder is None:
            return
        windows = await self._ask(
            lambda reader: reader.windows(*_bounds(from_ms, to_ms), newest_first=True)
        )
        while True:
            window = await self._ask(lambda _: next(windows, None))
            if window is None:
                return
            yield served_part(window, self._instruments())

    async def _ask(self, question: Callable[["ArchiveReader"], T]) -> T:
        return await self._in_turn(lambda: question(self._open()))

    async def _in_turn(self, read: Callable[[], T]) -> T:
        visit = current_visit()
        async with self._turns.taken(visit.address):
            answer = asyncio.create_task(asyncio.to_thread(self._answer, read))
            try:
                return await asyncio.shield(answer)
            except asyncio.CancelledError:
                # The turn is over when the thread is.
                visit.end()
                await asyncio.wait([answer])
                answer.exception()
                raise

    def _answer(self, read: Callable[[], T]) -> T:
        try:
            answer = read()
        except (OSError, *_UNEXPECTED) as error:
            fault = f"archive_dir {self._folder}: {error!r}"
            # Once, however many ask.
            if fault != self._fault:
                log.error("the archive cannot be read", error=fault)
            self._fault = fault
            raise ArchiveUnreadable from None
        self._fault = None
        return answer

    def _open(self) -> "ArchiveReader":
        from archive.parquet.archive_reader import ArchiveReader
        from gateway.upstream.visited_files import VisitedFiles

        self._windows = self._windows or ArchiveReader(self._path, VisitedFiles)
        return self._windows

    def _open_bars(self) -> "BarReader":
        from archive.parquet.bar_reader import BarReader
        from gateway.upstream.visited_files import VisitedFiles

        self._bars = self._bars or BarReader(self._path, VisitedFiles)
        return self._bars

    @property
    def _path(self) -> Path:
        return self._folder or Path()


def _bounds(from_ms: int | None, to_ms: int | None) -> tuple[int, int]:
    return from_ms or 0, END_OF_TIME_MS if to_ms is None else to_ms


async def newest_of_both(
    of_log: AsyncIterator[WindowSnapshot],
    archived: ArchivedWindows,
    limit: int,
    from_ms: int | None,
    to_ms: int | None,
) -> AsyncIterator[WindowSnapshot]:
    """Yield up to ``limit`` windows, newest first: of the log, then of the archive."""
    seen: set[tuple[str, int]] = set()
    oldest_us: int | None = None
    async for window in of_log:
        seen.add((window.epoch, window.offset))
        oldest_us = window.published_us
        yield window
    if len(seen) >= limit:
        return
    async for window in archived.newest(from_ms, to_ms):
        # The archive goes on where the log ends: what is in both came from the log.
        is_newer = oldest_us is not None and window.published_us > oldest_us
        if is_newer or (window.epoch, window.offset) in seen:
            continue
        seen.add((window.epoch, window.offset))
        yield window
        if len(seen) >= limit:
            return
