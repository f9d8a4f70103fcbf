"""A file that is not what was written: left out, named, set aside."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.logged import LoggedWindow, segment_of
from archive.parquet.archive_reader import ArchiveReader
from archive.parquet.bar_reader import BarReader
from archive.parquet.checked_file import Damaged, reading
from archive.parquet.parquet_counts import ParquetCounts
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.segment_folder import all_segments, bars_root
from archive.parquet.tables import build_tables
from tests.archive.contract.test_segment import make_segment
from tests.archive.parquet.test_parquet_sink import store_bars
from tests.gateway.samples import FIRST_WINDOW, LISTED, make_isins, make_row
from tests.gateway.samples import make_snapshot as snapshot

ISINS = make_isins(5)
EVERY = 0, 2**53

Change = Callable[[Path], None]


def flip(at: int) -> Change:
    """Return what flips a bit, so many bytes from the end."""

    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 0x10
        path.write_bytes(data)

    return change


def flip_in(at: int) -> Change:
    """Return what flips a bit of a column's last page: no decoder need notice."""

    def change(path: Path) -> None:
        footer = pq.read_metadata(path)
        chunk = footer.row_group(0).column(range(len(footer.schema.names))[at])
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        flip(begin + chunk.total_compressed_size - 2)(path)

    return change


def cut(share: float) -> Change:
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def rewrite(make: Callable[[pa.Table], pa.Table]) -> Change:
    return lambda path: pq.write_table(make(pq.read_table(path)), path)


def nulls_in(name: str) -> Change:
    def make(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        return table.set_column(at, name, pa.nulls(table.num_rows, kind))

    return rewrite(make)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def other_types(table: pa.Table) -> pa.Table:
    texts = [
        pa.field(f.name, pa.string()) if pa.types.is_integer(f.type) else f
        for f in table.schema
    ]
    return table.cast(pa.schema(texts))


KINDS: dict[str, Change] = {
    "a bit of the first column": flip_in(0),
    "a bit of the last column": flip_in(-1),
    "the length of the footer": flip(-6),
    "the schema in the footer": lambda path: (
        path.write_bytes(path.read_bytes().replace(b"epoch", b"\xffpoch")) and None
    ),
    "cut off by half": cut(0.5),
    "emptied": cut(0),
    "missing": lambda path: path.unlink(),
    "text": lambda path: path.write_bytes(b"price,size\n1,2\n" * 90) and None,
    "a folder": as_folder,
    "other types": rewrite(other_types),
    "a column less": rewrite(lambda table: table.drop_columns(["epoch"])),
    "nulls for names": nulls_in("epoch"),
    "no row left": rewrite(lambda table: table.slice(0, 0)),
    "another segment's": rewrite(
        lambda table: table.set_column(
            table.schema.get_field_index("epoch"),
            "epoch",
            pa.array(["other"] * table.num_rows),
        )
    ),
}

SET_ASIDE = ("a bit of the last column", "cut off by half", "missing", "no row left")
"""Found by bytes, by a footer, by the folder, and by counts."""


def store(sink: ParquetSink, offset: int) -> None:
    message = snapshot(offset, *(make_row(i, f"{offset}.5", offset) for i in ISINS))
    run = [LoggedWindow.decode(message.encode())]
    sink.store(segment_of(run), build_tables(run, [1], lambda _: LISTED, 2_000))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of four windows and four batches of bars, a segment each."""
    root = tmp_path_factory.mktemp("whole") / "archive"
    sink = ParquetSink(root, 2**40, 0)
    sink.open()
    for number in range(1, 5):
        store(sink, number)
        store_bars(sink, 0, number)
    sink.close()
    return root


@pytest.fixture
def archive(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "archive", symlinks=True))


def files_of(root: Path, name: str) -> list[Path]:
    root = bars_root(root) if name == "bars" else root
    return [path / f"{name}.parquet" for _, path in all_segments(root)]


def end_of(offset: int) -> int:
    return FIRST_WINDOW + offset * 2_000


@pytest.mark.parametrize("name", ["rows", "windows", "bars"])
@pytest.mark.parametrize("change", KINDS.values(), ids=KINDS)
def test_whatever_was_done_to_a_file_the_others_answer(
    change: Change, name: str, archive: Path
) -> None:
    """And the file is named, once it was looked at; nothing is made up."""
    second = files_of(archive, name)[1]
    change(second)
    counts = ParquetCounts(archive)
    # By its footer and counts, or at the latest by its bytes.
    seen = counts.damage()
    reader, bars = ArchiveReader(archive), BarReader(archive)
    for isin in ISINS:
        points = reader.points(isin, *EVERY, 9, newest=True)
        prices = {p.window: p.price for p in points}
        assert prices.items() <= {end_of(n): f"{n}.5" for n in range(1, 5)}.items()
        assert len(prices) >= 3
    windows = [window.offset for window in reader.windows(*EVERY)]
    assert [n for n in windows if n != 2] == [1, 3, 4]
    assert len(bars.newest(ISINS[0], 60_000, *EVERY, 9)) >= 3
    counts.windows(*EVERY), counts.rows(*EVERY), counts.bars(*EVERY)
    seen += [*counts.damage(), *reader.damage(), *bars.damage()]
    named = {line.partition(": ")[0] for line in seen}
    # No answer needs the last column of rows.
    is_read = change is not KINDS["a bit of the last column"] or name != "rows"
    assert named == ({str(second)} if is_read else set())
    # Each by what it has met.
    gaps = [*counts.gaps("windows"), *counts.gaps("bars")]
    gaps += [*reader.gaps(*EVERY), *bars.gaps(*EVERY)]
    assert {(gap.kind, gap.windows, gap.product) for gap in gaps} == (
        {("damaged", 1, "bars" if name == "bars" else "windows")} if is_read else set()
    )


@pytest.mark.parametrize("name", ["rows", "windows", "bars"])
@pytest.mark.parametrize("kind", SET_ASIDE)
def test_whatever_was_done_to_a_file_it_is_set_aside(
    kind: str, name: str, archive: Path
) -> None:
    """The others are merged, and it can be stored again; its bytes are kept."""
    KINDS[kind](files_of(archive, name)[1])
    sink = ParquetSink(archive, 2**40, 0)
    sink.open()
    done = list(iter(lambda: sink.tidy(end_of(4) + 86_400_000), None))
    [path] = sink.damaged()
    assert [line for line in done if line.startswith(f"set aside {path}, because ")]
    product = "bars" if name == "bars" else "windows"
    kept = sink.stored()[product]
    assert [n for s in kept for n in range(s.first, s.last + 1)] == [1, 3, 4]
    counts = ParquetCounts(archive)
    assert counts.damage() == [f"{path}: was set aside"]
    [gap] = counts.gaps(product)
    assert (gap.kind, gap.windows) == ("damaged", 1)
    if product == "bars":
        store_bars(sink, 0, 2)
    else:
        store(sink, 2)
    done = list(iter(lambda: sink.tidy(end_of(4) + 86_400_000), None))
    assert all(line.startswith("merged") for line in done)
    assert counts.gaps(product) == []
    kept = sink.stored()[product]
    assert [n for s in kept for n in range(s.first, s.last + 1)] == [1, 2, 3, 4]
    sink.close()


def test_what_was_set_aside_counts_and_goes_with_its_day(archive: Path) -> None:
    """So that the bound in bytes is one."""
    cut(0.5)(files_of(archive, "rows")[1])
    sink = ParquetSink(archive, 2**40, 0)
    sink.open()
    while sink.tidy(end_of(4)) is not None:
        continue
    whole = sink.size_bytes()
    [path] = sink.damaged()
    sink.close()
    small = ParquetSink(archive, whole - 1, 0)
    small.open()
    assert small.tidy(end_of(4)) == "removed what was set aside of 2026-03-20"
    assert small.damaged() == []
    assert not Path(path).exists()
    small.close()


def test_a_file_that_was_put_back_is_read_again(archive: Path) -> None:
    """As from a backup: nothing is remembered of it."""
    second = files_of(archive, "rows")[1]
    data = second.read_bytes()
    second.write_bytes(b"")
    reader = ArchiveReader(archive)
    assert len(reader.points(ISINS[0], *EVERY, 9, newest=True)) == 3
    assert len(reader.damage()) == 1
    second.write_bytes(data)
    assert len(reader.points(ISINS[0], *EVERY, 9, newest=True)) == 4
    assert reader.damage() == []
    assert reader.gaps(*EVERY) == []


def test_a_disk_in_trouble_is_no_damaged_file(tmp_path: Path) -> None:
    """Nor is a file that has gone with its segment."""
    for code in (errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.ENOMEM):
        with pytest.raises(OSError, match="trouble") as error, reading(tmp_path / "x"):
            raise OSError(code, "trouble")
        assert not isinstance(error.value, Damaged)
    with pytest.raises(FileNotFoundError), reading(tmp_path / "gone" / "x"):
        raise FileNotFoundError
    with pytest.raises(Damaged, match="is missing"), reading(tmp_path / "x"):
        raise FileNotFoundError
    for code in (None, errno.EIO):
        with pytest.raises(Damaged, match="bad sector"), reading(tmp_path / "x"):
            raise OSError(code, "bad sector")


def test_a_gap_by_damage_ends_where_windows_were_stored_again() -> None:
    """Told for what of the damaged segment is in no other one."""
    damaged = make_segment(4, 9)
    kept = [make_segment(1, 3), make_segment(7, 12)]
    [gap] = find_gaps(kept, damaged=[damaged, damaged])
    assert isinstance(gap, ArchiveGap)
    assert (gap.kind, gap.windows) == ("damaged", 3)
    assert (gap.after_ms, gap.before_ms) == (kept[0].last_ms, kept[1].first_ms)
    assert find_gaps([*kept, damaged], damaged=[damaged]) == []
    [only] = find_gaps([], damaged=[make_segment(1, 2)])
    assert (only.after_ms, only.windows) == (None, 2)
