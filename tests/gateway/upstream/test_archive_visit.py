"""What is read of the archive for somebody, and what it costs him."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from archive.parquet.tables import WINDOWS
from gateway.admission.turns import NoTurn
from gateway.admission.work import ROWS_A_SEGMENT
from gateway.upstream.archive_visit import VisitOver, current_visit, visiting
from gateway.upstream.archived_windows import MOST_WAITING_EACH, ArchivedWindows
from gateway.upstream.visited_files import VisitedFiles


class Reading:
    """A question that opens files without an end."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.opened = 0

    def __call__(self) -> None:
        while True:
            current_visit().note_file()
            self.opened += 1
            self.began.set()
            time.sleep(0.001)


async def test_a_thread_ends_at_its_next_file_when_its_client_goes(
    tmp_path: Path,
) -> None:
    """What it has opened is paid for, and its turn is another's."""
    archived, reading, charged = ArchivedWindows(tmp_path), Reading(), list[int]()

    async def ask() -> None:
        with visiting("a", charged.append):
            await archived._in_turn(reading)

    asking = asyncio.create_task(ask())
    await asyncio.to_thread(reading.began.wait)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert charged == [ROWS_A_SEGMENT * reading.opened]
    with visiting("a", charged.append):
        assert await archived._in_turn(lambda: 7) == 7
    assert charged[1:] == [0]


async def test_questions_wait_in_a_queue_with_an_end(tmp_path: Path) -> None:
    """Each address in its own: another one's is answered meanwhile."""
    archived, reading = ArchivedWindows(tmp_path), Reading()

    async def ask() -> None:
        with visiting("a", lambda _: None):
            await archived._in_turn(reading)

    asked = [asyncio.create_task(ask()) for _ in range(MOST_WAITING_EACH + 1)]
    await asyncio.to_thread(reading.began.wait)
    with pytest.raises(NoTurn):
        await ask()
    with visiting("b", lambda _: None):
        assert await archived._in_turn(lambda: 7) == 7
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


def test_nothing_is_opened_once_a_visit_is_over() -> None:
    """Outside of any visit nobody is told to end."""
    with visiting("a", lambda _: None) as visit:
        current_visit().note_file()
        assert (visit.address, visit.opened) == ("a", 1)
        visit.end()
        with pytest.raises(VisitOver):
            current_visit().note_file()
    current_visit().note_file()
    assert current_visit().address == ""


def test_a_damaged_file_is_remembered_from_one_visit_to_the_next(
    tmp_path: Path,
) -> None:
    """Whoever reads it pays for it, unless he has gone."""
    files, charged = VisitedFiles(tmp_path, WINDOWS), list[int]()
    path = tmp_path / "windows.parquet"
    path.write_bytes(b"no Parquet")
    for _ in range(2):
        with visiting("a", charged.append) as visit:
            with files.skipping_damage(path):
                raise ValueError("no Parquet")
            assert list(files.damage()) == [path]
            visit.end()
            with pytest.raises(VisitOver), files.skipping_damage(path):
                pass
    assert charged == [ROWS_A_SEGMENT] * 2
