"""Test data: instruments, rows, groups, windows."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import orjson
from stdnum import isin as stdnum_isin

from gateway.admission.bounds import BOUNDS, Bounds
from gateway.admission.work import WorkBudget
from gateway.protocol.key_sets import KeySets
from gateway.settings import GatewaySettings
from gateway.stream.bars.bar_delivery import BarDesk
from gateway.stream.board import Board, News, Position
from gateway.stream.commands import ClientCommands, Shared
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery, NewestUpdate
from gateway.stream.frames import Update
from gateway.stream.paced_source import PacedSources
from gateway.stream.statuses.status_delivery import StatusDesk
from gateway.stream.trade_delivery import TradeDesk
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.known_instruments import Instruments
from ingest.trade import Trade
from throttle.contract.group import GROUP, Group, GroupFigures, units
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import encode_version

SAMSUNG = "KR7005930003"
HYNIX = "KR7000660001"
NAVER = "KR7035420009"
INSTRUMENT_LIST = f"""isin,code,name,market,sector,prev_close
{SAMSUNG},005930,Samsung Electronics,KOSPI,chips,199400
{HYNIX},000660,"SK hynix, Inc.",KOSPI,chips,0.30
{NAVER},035420,NAVER,KOSDAQ,internet & media,
"""
LISTED = Instruments(parse_list(INSTRUMENT_LIST.splitlines(keepends=True)).instruments)
EPOCH = "k3x9"
WINDOW_MS = 2_000
FIRST_WINDOW = 1_773_964_802_000


def make_isins(count: int) -> list[str]:
    """Return so many different valid ISINs, in order."""
    numbers = [f"KR7{n:08d}" for n in range(count)]
    return [n + stdnum_isin.calc_check_digit(n) for n in numbers]


def make_row(
    isin: str = SAMSUNG,
    price: str = "199500",
    seq: int = 1,
    trades: int = 1,
    **extra: str,
) -> Row:
    """Return a row; a greater ``seq`` makes it newer.

    It stands for so many trades with its price and size; for 0, of trades that nobody
    has counted.
    """
    trade = Trade(isin, FIRST_WINDOW * 1_000 + seq, seq, price, "40", extra)
    version = encode_version(trade.time_us, seq, seq)
    sums = b"%d" % trades
    if trades > 1 or extra:
        one = Amounts.of_trade(price, "40", trade.updates)
        sums = reduce(RowSums.fold, [RowSums(1, one)] * trades).encode()
    return Row(isin, version, sums, trade.to_row())


def restate(shown: LastValue, late: Row) -> Row:
    """Return the row that is published of trades that came too late to be shown."""
    return Row(late.isin, shown.version, late.row_sums.encode(), shown.body)


def sums_of(item: Mapping[str, Any]) -> RowSums:
    """Return what an item of a frame says of all its trades, as a client adds it up.

    The frame has to be read with ``parse_exact``.
    """
    trades = int(item["trades"])
    if "volume" in item:
        sums = (units(item[name]) for name in ("volume", "value"))
        extremes = (item.get(name) for name in ("high", "low"))
        high, low = (None if text is None else units(text) for text in extremes)
        return RowSums(trades, Amounts(*sums, high, low))
    if trades == 1:
        return RowSums(1, Amounts.of_trade(item["price"], item["size"]))
    return RowSums(trades)


def parse_exact(frame: bytes) -> Any:
    """Read a frame; its numbers stay text."""
    return json.loads(frame, parse_int=str, parse_float=str)


def make_priced_row(isin: str, seq: int = 1) -> Row:
    """Return a row whose price can be told from its ``seq``."""
    return make_row(isin, price_of(seq), seq)


def price_of(seq: int) -> str:
    """Return the price of the rows that ``make_priced_row`` makes."""
    return f"{seq + 100}.5"


def make_snapshot(
    offset: int,
    *rows: Row,
    windows: int = 1,
    epoch: str = EPOCH,
    window: int | None = None,
    groups: Iterable[Group] = (),
) -> WindowSnapshot:
    """Return an update; its window follows from its offset, unless it is given.

    The groups' window is that of the update.
    """
    if window is None:
        window = FIRST_WINDOW + offset * WINDOW_MS
    published_us = window * 1_000 + 7
    of_window = tuple(at_window(group, window) for group in groups)
    version = 1 if of_window else 0
    return WindowSnapshot(
        epoch, offset, window, windows, published_us, rows, of_window, version
    )


def make_group(name: str = "market:KOSPI", trades: int = 1, **figures: int) -> Group:
    """Return a group of window 0, to be had by its trades; volume is in 0.1."""
    volume = figures.pop("volume", 400) * units("0.1")
    made = GroupFigures(trades=trades, volume=volume, **figures)
    return made.encode(GROUP + name, 0)


def at_window(group: Group, window: int) -> Group:
    """Return the same figures in a window."""
    _, _, rest = group.body.partition(b',"instruments":')
    name = orjson.dumps(group.key)
    body = b'{"group":%b,"window":%d,"instruments":%b' % (name, window, rest)
    return Group(group.key, body)


def make_board(*rows: Row, offset: int = 1) -> Board:
    """Return a board that has just taken ``rows`` in."""
    board = Board()
    board.replace(Position(EPOCH, offset - 1, FIRST_WINDOW), [])
    board.apply(make_snapshot(offset, *rows))
    return board


def make_commands(
    board: Board,
    instruments: Instruments | KeySets | None = None,
    bounds: Bounds = BOUNDS,
    **settings: object,
) -> ClientCommands:
    """Return what answers a client on ``board``, its clock at 0."""
    chosen = GatewaySettings.model_validate(settings)
    counters = Counters()
    key_sets = (
        instruments if isinstance(instruments, KeySets) else KeySets(board.numbers)
    )
    if isinstance(instruments, Instruments):
        key_sets.change_instruments(instruments)
    newest = NewestUpdate()
    delivery = Delivery(board, bounds, counters, key_sets, newest)
    shared = Shared(
        chosen,
        counters,
        None,
        # Cells of all addresses would be half a megabyte.
        WorkBudget(chosen.rows_per_second, defaultdict(float)),
        PacedSources(board, newest),
        BarDesk(counters, lambda: board.window_ms, lambda: len(board)),
        TradeDesk(counters),
        StatusDesk(counters),
    )
    return ClientCommands(delivery, shared, lambda: None, 0.0)


def make_update(board: Board, news: News) -> Update:
    """Return the update of what has just been put on the board."""
    rows = news.windows, news.rows, board.numbers, news.groups
    return Update(board.complete, *rows, news.first_new)


def offer(delivery: Delivery, update: Update) -> bool:
    """Publish an update to one client; say whether something is to be sent to it."""
    delivery.newest.put(update)
    return delivery.is_owed
