"""The receipt in its file."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.feed.receipt import Receipt, read_receipt
from ingest.tradelog.contract import AppendTally, LogInfo
from tests.doc_pages import blocks
from tickthrottle_client.receipt_v1 import EVERY_MS, ReceiptFile

INFO = LogInfo("id", 1, 0)


class CountingLog:
    """A writer that only has counts."""

    dropped_at_cap = 0

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.tallies = [AppendTally()]

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        self.tallies[0].acknowledged += len(entries)
        return len(entries)

    def abandon(self) -> None:
        """Nothing is ever under way."""


def test_a_receipt_is_renewed_every_few_seconds_and_at_the_end(tmp_path: Path) -> None:
    """From the start there is one, it is never old, and the last one says so."""
    path, writer = tmp_path / "receipt.json", CountingLog()
    file = ReceiptFile(path, INFO, writer, 1_000, print)
    assert read_receipt(path.read_bytes()) == Receipt(
        "id", 1_000, 1_000, False, {}, 0, (AppendTally(),)
    )
    writer.append([("x", b"")] * 5)
    file.renew(1_000 + EVERY_MS - 1)
    assert read_receipt(path.read_bytes()).written_ms == 1_000
    file.renew(1_000 + EVERY_MS)
    assert read_receipt(path.read_bytes()).partitions == (AppendTally(5),)
    writer.refused["too_large_for_log"] = 2
    file.finish(1_001 + EVERY_MS)
    last = read_receipt(path.read_bytes())
    assert last.ended
    assert last.written_ms == 1_001 + EVERY_MS
    assert last.refused == {"too_large_for_log": 2}
    assert list(tmp_path.iterdir()) == [path]
    [shown] = blocks("docs/running.md", "json")
    assert read_receipt(shown.encode()).ended
    assert json.loads(shown).keys() == json.loads(path.read_bytes()).keys()


def test_a_folder_that_is_gone_is_told_once_and_ends_nothing(tmp_path: Path) -> None:
    """What cannot be written is told, again at the end."""
    folder = tmp_path / "folder"
    folder.mkdir()
    told: list[OSError] = []
    file = ReceiptFile(
        folder / "receipt.json", INFO, CountingLog(), 0, on_failure=told.append
    )
    (folder / "receipt.json").unlink()
    folder.rmdir()
    for step in range(1, 5):
        file.renew(step * EVERY_MS)
    file.finish(5 * EVERY_MS)
    assert len(told) == 2
    folder.mkdir()
    file.renew(6 * EVERY_MS)
    assert len(told) == 2
    assert not read_receipt((folder / "receipt.json").read_bytes()).ended


def test_a_place_that_cannot_be_written_to_is_an_error_at_once(tmp_path: Path) -> None:
    """Whoever asks for a report learns at the start that there will be none."""
    with pytest.raises(OSError, match="No such file"):
        ReceiptFile(
            *(tmp_path / "missing" / "r.json", INFO, CountingLog(), 0), on_failure=print
        )
