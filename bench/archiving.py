"""How fast the archive stores, how big a day is, and how fast a history is read.

    python bench/archiving.py                 # a day of 2,879 instruments: ten minutes
    python bench/archiving.py --seconds 1800  # a part of it, in a minute
    python bench/archiving.py --postgres postgresql://user:password@host/database
    python bench/archiving.py --kafka 127.0.0.1:9092 --seconds 600
    python bench/archiving.py --kafka … --registry http://127.0.0.1:8081/apis/ccompat/v7

Into files and a database a minute is stored at once, into topics each window.

One core stores (CPU time counts); the windows are those of the simulated market, made
before anything is measured, and follow each other as a throttle publishes them.
"""

import os
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, groupby
from pathlib import Path

import pyarrow as pa
from machine import options, percentile

from archive.contract.logged import LoggedWindow, runs_of, segment_of
from archive.contract.segment import day_of, span_of
from archive.parquet.archive_reader import ArchiveReader
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import build_tables
from archive.storing.archive_sink import Sink
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.market import encode_instruments
from ingest.sources.simulator import Simulator
from throttle.audit.compare import groups_of
from throttle.audit.recompute import Entry, WindowRule, recompute
from throttle.contract.snapshot import WindowSnapshot

BEGIN_MS = 1_773_964_800_000
WINDOW_MS = 2_000
WINDOWS_A_FLUSH = 30


def main() -> None:
    arguments = options(
        __doc__,
        seconds=(23_400, "of trading"),
        rate=(750.0, "trades a second"),
        instruments=(2_879, "of the market"),
        postgres=("", "a database, emptied before"),
        kafka=("", "a broker; topics of its own"),
        registry=("", "a schema registry: records of topics are Avro"),
    )
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    market = Simulator(
        instruments=arguments.instruments,
        rate=arguments.rate,
        seconds=arguments.seconds,
    )
    instruments = Instruments(
        parse_list(encode_instruments(market.listing()).splitlines(True)).instruments, 1
    )
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        root = Path(folder)
        sink = create_sink(arguments, root)
        size = 1 if arguments.kafka else WINDOWS_A_FLUSH
        windows, rows, spent_s, steps_ms = store_all(sink, market, instruments, size)
        print(
            f"stored {windows:,} windows, {rows:,} rows: "
            f"{rows / spent_s:,.0f} rows/s of CPU, "
            f"{rows * 1_000 / sum(steps_ms):,.0f} of wall; {size} windows in "
            f"{percentile(steps_ms, 0.5):.1f} ms (p50), "
            f"{percentile(steps_ms, 0.99):.1f} ms (p99)"
        )
        if arguments.kafka:
            sink.close()
            return
        size = sink.size_bytes()
        day = size * 11_700 / windows
        print(
            f"{size / 1e6:.1f} MB, {size / rows:.1f} bytes a row; "
            f"a day of 11,700 windows: {day / 1e6:.0f} MB"
        )
        if not arguments.postgres:
            began_s = time.process_time()
            newest_ms = BEGIN_MS + 86_400_000 + 1
            while (done := sink.tidy(newest_ms)) is not None:
                print(f"{done}: {time.process_time() - began_s:.1f} s of CPU")
            print(f"{sink.size_bytes() / 1e6:.1f} MB in one piece")
            read_histories(root, instruments)
        sink.close()


def create_sink(arguments: Namespace, root: Path) -> Sink:
    """Return the destination that was asked for; not each has its libraries here."""
    if arguments.postgres:
        from archive.postgres.postgres_sink import PostgresSink

        return PostgresSink(arguments.postgres, 0, "bench")
    if arguments.kafka:
        from archive.topics.kafka_sink import KafkaSink
        from archive.topics.relay_topics import RelayTopics

        topics = RelayTopics(arguments.kafka, f"bench-{time.time_ns()}")
        return KafkaSink(topics, "bench", registry_url=arguments.registry)
    return ParquetSink(root, 2**50, 0)


def store_all(
    sink: Sink, market: Simulator, instruments: Instruments, size: int
) -> tuple[int, int, float, list[float]]:
    """Store all windows, so many a step; return counts, seconds, ms of each step."""
    sink.open()
    windows, rows, spent_s, steps_ms = 0, 0, 0.0, list[float]()
    pieces = (
        flush[begin : begin + size]
        for flush in flushes(market, instruments)
        for begin in range(0, len(flush), size)
    )
    for piece in pieces:
        began_s, at_s = time.process_time(), time.perf_counter()
        for run in runs_of(piece):
            tables = build_tables(run, [1] * len(run), lambda _: instruments, 2_000)
            sink.store(segment_of(run), tables)
            windows, rows = windows + len(run), rows + tables.rows.num_rows
        while sink.tidy(piece[-1].window) is not None:
            pass
        spent_s += time.process_time() - began_s
        steps_ms.append((time.perf_counter() - at_s) * 1_000)
    return windows, rows, spent_s, steps_ms


def flushes(
    market: Simulator, instruments: Instruments
) -> Iterator[list[LoggedWindow]]:
    """Yield the windows of the market, as many as are stored together."""
    rule, offsets = WindowRule(WINDOW_MS, max_ahead_ms=5_000), count(1)
    length_ms = WINDOWS_A_FLUSH * WINDOW_MS
    for number, events in groupby(
        market.events(BEGIN_MS * 1_000), lambda e: e.due_us // 1_000 // length_ms
    ):
        start_ms = BEGIN_MS + number * length_ms
        entries = (
            Entry(0, append_ms << 21 | place & 7, append_ms, event.payload)
            for place, event in enumerate(events)
            for append_ms in (BEGIN_MS + event.due_us // 1_000,)
        )
        batch = recompute(entries, start_ms, start_ms + length_ms, rule)
        flush = []
        for end_ms, computed in sorted(batch.windows.items()):
            rows = tuple(one.row for one in computed.values())
            published_us = end_ms * 1_000 + 50_000
            bare = WindowSnapshot(
                "a1b2c3d4", next(offsets), end_ms, 1, published_us, rows
            )
            groups = groups_of(bare, computed, instruments)
            whole = replace(
                bare,
                groups=tuple(groups[key] for key in sorted(groups)),
                instruments_version=1,
            )
            flush.append(LoggedWindow.decode(whole.encode()))
        yield flush


def read_histories(root: Path, instruments: Instruments) -> None:
    """Time the whole day of some instruments, from the busiest to quiet ones."""
    bounds = span_of(day_of(BEGIN_MS + 2_000))
    reader = ArchiveReader(root)
    isins = [instrument.isin for instrument in instruments][
        :: max(1, len(instruments) // 40)
    ]
    times_ms, most = [], 0
    for isin in isins:
        began_s = time.perf_counter()
        points = reader.points(isin, *bounds, 20_000, newest=True)
        b",".join(point.encode() for point in points)
        times_ms.append((time.perf_counter() - began_s) * 1_000)
        most = max(most, len(points))
    print(
        f"history of a day, {len(isins)} instruments, {most:,} windows at most: "
        f"median {statistics.median(times_ms):.0f} ms, worst {max(times_ms):.0f} ms"
    )


if __name__ == "__main__":
    main()
