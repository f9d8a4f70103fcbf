"""Kafka Streams and Flink beside tickthrottle, in turns, on one topic of Kafka.

Each does the same: the latest trade of each instrument in each window of two seconds,
by the broker's stamps, into Redis. One engine runs at a time, on the same broker. Live,
at several rates and then in silence; and on a backlog, with trades that come late at
its end. Afterwards the topic is read again and every row that came is compared. Maven
fetches and builds the others; `docs/alternatives.md` says what each of them promises.
"""

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from fill import create_topic, running_broker
from machine import Row, options, print_machine, print_rows

from bench.peers.maven import build, java_version
from bench.peers.measuring import Feed, measure_drain, measure_live
from bench.peers.running import ENGINES
from bench.peers.topics import fill

PARTITIONS = 4


def main() -> None:
    chosen = options(
        __doc__,
        engines=(
            ["tickthrottle", "streams-2", "flink-2"],
            "which, in their turn; the number is that of threads",
            ENGINES,
        ),
        rounds=(2, "of all engines"),
        instruments=(2_879, "of the market"),
        live=(True, "the live rates"),
        rates=([900, 20_000], "trades/s"),
        windows=(10, "of each rate"),
        warmup=(8.0, "s before them"),
        drain=(True, "the backlog"),
        backlog=(2_000_000, "trades"),
        recorded=(50_000, "trades/s of it"),
        within=(300.0, "longest drain, s"),
    )
    build()
    backlog = (
        f"A backlog of {chosen.backlog:,} trades recorded at {chosen.recorded:,}/s"
    )
    lives: list[Row] = []
    silences: list[Row] = []
    drains: list[Row] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="engines-") as folder,
            running_broker(Path(folder)) as servers,
        ):
            measure(servers, chosen, lives, silences, drains)
    finally:
        print_rows("Live, from a window's end to its last message", lives)
        print_rows("Afterwards, in silence", silences)
        print_rows(backlog, drains)
        print_machine(f"; the others on {java_version()}")


def measure(
    servers: str,
    chosen: Namespace,
    lives: list[Row],
    silences: list[Row],
    drains: list[Row],
) -> None:
    if chosen.drain:
        log = create_topic(servers, "backlog", PARTITIONS, is_past=True)
        backlog = fill(log, chosen.backlog, chosen.recorded, chosen.instruments)
    feed = Feed(chosen.rates, chosen.warmup, chosen.windows, chosen.instruments)
    for number in range(1, chosen.rounds + 1):
        for engine in chosen.engines:
            print(f"round {number}: {engine}", file=sys.stderr, flush=True)
            if chosen.live:
                name = f"live-{number}-{engine}"
                log = create_topic(servers, name, PARTITIONS, is_past=False)
                rows, silence = measure_live(engine, log, feed)
                lives += rows
                silences.append(silence)
            if chosen.drain:
                drains.append(measure_drain(engine, backlog, chosen.within))


if __name__ == "__main__":
    main()
