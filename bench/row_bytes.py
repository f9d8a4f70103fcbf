"""How many bytes a window is for a list of 30 instruments, as objects and by position.

Windows of the simulated market at its default rate, each row with its sums, as the
throttle publishes them; frames as a gateway builds them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from random import Random
from statistics import mean

from machine import Row as Cells
from machine import options, print_rows

from gateway.positions.field_sets import EVERY, FieldSets
from gateway.protocol.key_sets import ALL, KeySet, KeySets
from gateway.stream.board import Board, Position
from gateway.stream.frames import Update
from ingest.sources.simulator import Simulator
from ingest.trade import Trade
from loadtest.client_mix import Audience
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

START_MS = 1_773_964_800_000
WINDOW_MS = 2_000
EPOCH = "bench"
LISTS = 50
SETS = (["price", "size", "trades"], ["price", "trades"])


def main() -> None:
    arguments = options(__doc__, windows=(60, "the second half of which is looked at"))
    board, sets = Board(), FieldSets()
    key_sets = KeySets(board.numbers)
    board.replace(Position(EPOCH, 0, START_MS), ())
    lists = {
        kind: [key_sets.move(KeySet(board.numbers, ()), keys) for keys in keys_of]
        for kind, keys_of in lists_of().items()
    }
    sizes: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for number, rows in enumerate(windows(arguments.windows), 1):
        end_ms = START_MS + number * WINDOW_MS
        snapshot = WindowSnapshot(EPOCH, number, end_ms, 1, 0, tuple(rows))
        news = board.apply(snapshot)
        if number <= arguments.windows // 2:
            # Until most instruments have traded, frames name new ones.
            continue
        sets.learn(lambda: (value.body for value in board.some(64)), number)
        numbers, first_new = board.numbers, news.first_new
        update = Update(board.complete, 1, news.rows, numbers, None, first_new)
        forms = [sets.take(names) for names in ([EVERY], *SETS)]
        for kind, watched in lists.items():
            for key_set in watched:
                frames = [update.frame(key_set)]
                frames += [update.by_position(form).frame(key_set) for form in forms]
                counts = (len(frame or b"") for frame in frames)
                sizes[kind].append((update.count(key_set), *counts))
    print_rows("Bytes of a window", [cells(kind, sizes[kind]) for kind in lists])


def lists_of() -> dict[str, list[tuple[str, ...]]]:
    """Return keys of clients: any 30 instruments, 30 by how much they trade, all."""
    isins = [instrument.isin for instrument in Simulator().listing()]
    chance = Random(1)
    popular = [member.keys for member in Audience(LISTS).members(isins)]
    anyhow = [tuple(chance.sample(isins, 30)) for _ in range(LISTS)]
    return {"any 30": anyhow, "30 that are popular": popular, "`*`": [(ALL,)]}


def windows(count: int) -> Iterator[list[Row]]:
    market = Simulator(seconds=count * WINDOW_MS / 1_000, repeats=0)
    events = market.events(START_MS * 1_000)
    for _, of_window in groupby(events, lambda e: e.due_us // (WINDOW_MS * 1_000)):
        trades: dict[str, list[Trade]] = defaultdict(list)
        for event in of_window:
            trades[event.key].append(Trade.from_wire(event.payload))
        yield [row_of(each) for each in trades.values()]


def row_of(trades: Sequence[Trade]) -> Row:
    newest = max(trades, key=lambda trade: (trade.time_us, trade.seq))
    sums = ONE
    if len(trades) > 1:
        each = (RowSums(1, Amounts.of_trade(t.price, t.size)) for t in trades)
        sums = reduce(RowSums.fold, each).encode()
    version = encode_version(newest.time_us, newest.seq, newest.seq)
    return Row(newest.isin, version, sums, newest.to_row())


def cells(kind: str, sizes: Sequence[tuple[int, ...]]) -> Cells:
    """Return a line of the table: means over lists and windows."""
    rows, plain, every, *some = (mean(column) for column in zip(*sizes, strict=True))
    shown = {
        f"`{','.join(names)}`": f"{size:,.0f}"
        for names, size in zip(SETS, some, strict=True)
    }
    return {
        "list": kind,
        "rows": f"{rows:.1f}",
        "objects": f"{plain:,.0f}",
        "all fields by position": f"{every:,.0f}",
        **shown,
    }


if __name__ == "__main__":
    main()
