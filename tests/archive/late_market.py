"""A market whose trades come in any order, and its windows, made by hand."""

import random
from collections.abc import Sequence
from functools import reduce

from ingest.trade import Trade
from tests.gateway.samples import FIRST_WINDOW, make_snapshot
from throttle.contract.row_sums import ONE, RowSums
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version


def make_trades(isins: Sequence[str], number: int, seed: int) -> list[Trade]:
    """Return trades in the order they were appended; many come behind newer ones."""
    chance = random.Random(seed)
    return [
        Trade(
            chance.choice(isins),
            FIRST_WINDOW * 1_000 + seq + chance.choice((0, 0, 0, -40)),
            seq,
            f"{chance.randint(1, 900)}.{chance.randint(0, 99):02}",
            chance.choice(("1", "40", "0.0000000000000001", "250000", "0.30")),
        )
        for seq in range(1, number + 1)
    ]


def newest_of(trades: Sequence[Trade]) -> Trade:
    """Return the latest trade."""
    return max(trades, key=lambda trade: (trade.time_us, trade.seq))


def make_windows(trades: Sequence[Trade], each: int) -> list[WindowSnapshot]:
    """Return windows of so many trades; an issue without news restates its row."""
    shown: dict[str, Row] = {}
    windows = []
    for begin in range(0, len(trades), each):
        of_window = trades[begin : begin + each]
        for isin in {trade.isin for trade in of_window}:
            of_issue = [trade for trade in of_window if trade.isin == isin]
            news, older = row_of(of_issue), shown.get(isin)
            if older is not None and older.version > news.version:
                news = older._replace(sums=sums_of(of_issue).encode())
            shown[isin] = news
        rows = (shown[isin] for isin in sorted({trade.isin for trade in of_window}))
        windows.append(make_snapshot(len(windows) + 1, *rows))
    return windows


def row_of(trades: Sequence[Trade]) -> Row:
    """Return the row of an issue's trades, all of them news."""
    newest = newest_of(trades)
    version = encode_version(newest.time_us, newest.seq, newest.seq)
    sums = ONE if len(trades) == 1 else sums_of(trades).encode()
    return Row(newest.isin, version, sums, newest.to_row())


def sums_of(trades: Sequence[Trade]) -> RowSums:
    """Return what a row says of them."""
    return reduce(RowSums.fold, (RowSums.of_trade(t.price, t.size) for t in trades))
