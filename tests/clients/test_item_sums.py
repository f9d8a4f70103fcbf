"""What was traded by items, in Python and beside it in tick.js: one rule, exactly."""

import asyncio
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from gateway.app import STATIC
from tests.clients.patience import soon
from tests.conftest import skip_or_fail
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tests.ports import free_port
from tickthrottle_client import Item, TickClient, Traded, traded
from tickthrottle_client.item_sums import (
    SUMS,
    WaitingItems,
    as_known,
    day_after,
    folded,
)
from tickthrottle_client.tick_client import read_message
from tickthrottle_client.tick_v1 import PROTOCOL


def node() -> str:
    path = shutil.which("node")
    if path is None:
        skip_or_fail("no node on PATH")
    return str(path)


ADD_UP = """
import { addTraded, readMessage, traded } from "./tick.mjs";
const { data } = readMessage(process.argv[2]);
console.log(JSON.stringify(data.map(traded).reduce(addTraded)));
"""


ADD_DAYS = """
import { dayAfter, readMessage } from "./tick.mjs";
const { data } = readMessage(process.argv[2]);
let day;
console.log(JSON.stringify(data.map((item) => (day = dayAfter(item, day)) ?? null)));
"""


def number(chance: Random) -> str:
    """Return a price or size with up to as many digits as a trade may have."""
    whole = chance.randrange(1, 10 ** chance.randrange(1, 19))
    places = chance.randrange(19)
    fraction = f".{chance.randrange(10**places):0{places}}" if places else ""
    return f"{whole}{fraction}"


def fields(item: Mapping[str, Any]) -> str:
    """Return an item's fields as JSON, its numbers as they are written."""
    return ",".join(f'"{name}":{value}' for name, value in item.items())


def make_item(chance: Random, trades: int) -> tuple[dict[str, Any], list[Any]]:
    """Return an item that stands for made-up trades, and those.

    Of a trade: price, size, whether it counts for the volume, and for the range.
    """
    counts = [chance.choice((True, True, True, False)) for _ in range(2)]
    own = [(number(chance), number(chance), *counts) for _ in range(trades)]
    price, size, *_ = own[-1]
    item = {"isin": '"KR7005930003"', "time": 1, "seq": 1, "price": price, "size": size}
    item["trades"] = trades
    if trades > 1 or counts != [True, True]:
        every = zip(SUMS, add_up(own), strict=True)
        item |= {name: text(n) for name, n in every if n is not None}
    return item, own


def add_up(trades: Sequence[Any]) -> tuple[Fraction | None, ...]:
    """Return volume, value, high and low of the trades that count for them."""
    sizes = [(Fraction(size), Fraction(price)) for price, size, v, _ in trades if v]
    prices = [Fraction(price) for price, _, _, counts in trades if counts]
    volume = sum((size for size, _ in sizes), Fraction(0))
    value = sum((size * price for size, price in sizes), Fraction(0))
    return volume, value, max(prices, default=None), min(prices, default=None)


def text(amount: Fraction) -> str:
    """Return a number of at most 36 places as decimal text."""
    digits = f"{int(amount * 10**36):037}"
    return f"{digits[:-36]}.{digits[-36:]}".rstrip("0").rstrip(".")


def test_items_add_up_to_their_trades_in_both_languages(tmp_path: Path) -> None:
    """To the last digit, however long the numbers are."""
    chance = Random(4)
    made = [make_item(chance, chance.choice((1, 1, 2, 37))) for _ in range(60)]
    trades = [trade for _, own in made for trade in own]
    items = "},{".join(fields(item) for item, _ in made)
    message = f'{{"type":"update","data":[{{{items}}}]}}'
    sums = [traded(item) for item in read_message(message)["data"]]
    total = reduce(Traded.fold, filter(None, sums))
    truth = len(trades), *add_up(trades)
    assert (total.trades, *map(Fraction, total[1:])) == truth
    shutil.copy(STATIC / "tick.js", tmp_path / "tick.mjs")
    (tmp_path / "add_up.mjs").write_text(ADD_UP)
    done = subprocess.run(
        [node(), tmp_path / "add_up.mjs", message],
        check=True,
        capture_output=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    assert (found["trades"], *(Fraction(found[name]) for name in SUMS)) == truth


def test_days_are_added_up_in_both_languages(tmp_path: Path) -> None:
    """As of every item: a day begins or is told again, is unknown, or goes on."""
    chance = Random(5)
    items, expected = list[dict[str, Any]](), list[Any]()
    so_far: list[Any] | None = None
    for place in range(200):
        item, own = make_item(chance, chance.choice((1, 1, 2, 5)))
        kind = "day" if place == 3 else chance.choice(("day", "hole", *["item"] * 8))
        if kind == "day":
            so_far = own
            said = dict(zip(SUMS, map(str_or_none, add_up(own)), strict=True))
            told = {"start": place, "trades": len(own), **said, "open": own[0][0]}
            item["day"] = f"{{{fields({n: t for n, t in told.items() if t})}}}"
        elif kind == "hole":
            # Nobody has counted them.
            so_far = None
            item = {n: item[n] for n in ("isin", "time", "seq", "price", "size")}
            item["trades"] = 0
        elif so_far is not None:
            so_far = [*so_far, *own]
        items.append(item)
        known = None if so_far is None else (len(so_far), *add_up(so_far))
        expected.append(known)
    listed = "},{".join(fields(item) for item in items)
    message = f'{{"type":"update","data":[{{{listed}}}]}}'
    day: dict[str, Any] | None = None
    in_python = [day := day_after(i, day) for i in read_message(message)["data"]]
    assert [as_numbers(day) for day in in_python] == expected
    shutil.copy(STATIC / "tick.js", tmp_path / "tick.mjs")
    (tmp_path / "add_days.mjs").write_text(ADD_DAYS)
    command = [node(), tmp_path / "add_days.mjs", message]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)
    in_javascript = json.loads(done.stdout)
    assert [as_numbers(day) for day in in_javascript] == expected
    opened = [day and Fraction(day["open"]) for day in in_python]
    assert [day and Fraction(day["open"]) for day in in_javascript] == opened


def str_or_none(amount: Fraction | None) -> str | None:
    """Return a number as decimal text, if there is one."""
    return None if amount is None else text(amount)


def as_numbers(day: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """Return trades and sums of a day, exactly."""
    if day is None:
        return None
    sums = (Fraction(day[name]) if name in day else None for name in SUMS)
    return day["trades"], *sums


def test_sums_that_nobody_knows_are_none() -> None:
    """Of an item that was known before, and after a hole; of a late trade they are."""
    item = {"price": Decimal("0.30"), "size": Decimal(7)}
    assert traded({**item, "trades": 0}) is None
    assert traded({**item, "trades": 37}) is None
    own = traded({**item, "trades": 1})
    assert own == (1, 7, Decimal("2.10"), Decimal("0.30"), Decimal("0.30"))
    late = dict(zip(SUMS, map(Decimal, (5, 10, 2, 2)), strict=True))
    assert traded({**item, "trades": 1, **late}) == (1, 5, 10, 2, 2)
    without_range = traded({**item, "trades": 2, "volume": 5, "value": 10})
    assert without_range == (2, 5, 10, None, None)
    assert without_range.fold(without_range) == (4, 10, 20, None, None)
    assert (
        without_range.fold(own)
        == own.fold(without_range)
        == (3, 12, Decimal("12.10"), *own[3:])
    )
    assert as_known({**item, "trades": 1, **late}) == {**item, "trades": 0}


def a_stream() -> Iterator[str]:
    """Yield frames: known, a trade, several, late ones, a hole, and one more."""
    late = {"volume": "5", "value": "10", "high": "2", "low": "2"}
    many = {"volume": "9.5", "value": "28.5", "high": "3.50", "low": "2.5"}
    without_range = {"volume": "4", "value": "12"}
    yield from frames(
        {"seq": 1, "trades": 0},
        {"seq": 2, "trades": 1},
        {"seq": 3, "trades": 3, **many},
        {"seq": 3, "trades": 1, **late},
        {"seq": 3, "trades": 2, **without_range},
        {"seq": 4, "trades": 0},
        {"seq": 5, "trades": 1},
    )


def frames(*items: Mapping[str, Any]) -> Iterator[str]:
    """Yield frames of one item each: a snapshot, then updates, unless it says a day."""
    head = {"epoch": "a", "offset": 1, "window": 2_000}
    ack = {"op": "subscribe", "id": 1, "accepted": [SAMSUNG], "rejected": []}
    yield json.dumps({"type": "ack", **ack})
    for place, item in enumerate(items):
        kind = "update" if place and "day" not in item else "snapshot"
        about = {**head, "offset": place, "window": place * 2_000, "final": True}
        opened = json.dumps({"type": kind, **about})[:-1]
        trade = {"isin": f'"{SAMSUNG}"', "time": 1, "price": "3.10", "size": "2"}
        yield f'{opened},"data":[{{{fields({**trade, **item})}}}]}}'
    yield json.dumps({"type": "heartbeat", **head, "offset": 9})


def a_gateway_behind() -> Iterator[str]:
    """Yield a snapshot, an older one, and what has come since that."""
    sums = {"volume": "20", "value": "62", "high": "3.1", "low": "3"}
    day = {"start": 0, "trades": 10, **sums}
    older = {**day, "trades": 7, "volume": "14", "value": "43.4", "low": "3.05"}
    several = {"volume": "4", "value": "12.4", "high": "3.1", "low": "3"}
    yield from frames(
        {"seq": 5, "trades": 0, "day": f"{{{fields(day)}}}"},
        {"seq": 3, "trades": 0, "day": f"{{{fields(older)}}}"},
        {"seq": 4, "trades": 2, **several},
        {"seq": 5, "trades": 1},
        {"seq": 6, "trades": 1},
    )


SUM_OF_STREAM = (8, Fraction("22.5"), Fraction("62.9"), Fraction("3.5"), Fraction(2))


@asynccontextmanager
async def saying(stream: Callable[[], Iterator[str]]) -> AsyncIterator[str]:
    """Serve everybody these frames; the value is the address."""

    async def speak(connection: ServerConnection) -> None:
        await connection.recv()
        for text in stream():
            await connection.send(text)
        await connection.wait_closed()

    port = free_port()
    async with serve(speak, "127.0.0.1", port, subprotocols=[Subprotocol(PROTOCOL)]):
        yield f"ws://127.0.0.1:{port}/v1/stream"


async def test_what_callbacks_get_adds_up_to_what_was_sent(
    tmp_path: Path,
) -> None:
    """Also what is told as one, because nothing was painted; nothing is told twice."""
    first: list[Item] = []
    second: list[Item] = []
    async with saying(a_stream) as url:
        async with TickClient(url, waits=True) as ticks:
            ticks.subscribe([SAMSUNG], first.append)
            await soon(lambda: len(first) == 7)
            ticks.subscribe([SAMSUNG], second.append)
        told = await told_in_node(url, tmp_path)
    total = reduce(Traded.fold, filter(None, map(traded, first)))
    assert (total.trades, *map(Fraction, total[1:])) == SUM_OF_STREAM
    assert [(item["seq"], item["trades"]) for item in second] == [(5, 0)]
    # The snapshot, all updates as one; and, for both callbacks, what is known.
    [[known, _], [item, window], [again, nothing]] = told["first"]
    assert (known["trades"], item["seq"], window) == (0, 5, 12_000)
    found = (item["trades"], *(Fraction(item[name]) for name in SUMS))
    assert found == SUM_OF_STREAM
    assert told["second"] == [[again, nothing]]
    assert (again["trades"], nothing, again.keys() & SUMS) == (0, None, set())


async def test_a_day_goes_on_from_that_of_a_gateway_that_is_behind(
    tmp_path: Path,
) -> None:
    """Each trade is in it once, though the client had some of them before."""
    items: list[Item] = []
    async with saying(a_gateway_behind) as url:
        async with TickClient(url, waits=True) as ticks:
            ticks.subscribe([SAMSUNG], items.append)
            await soon(lambda: bool(items) and items[-1]["seq"] == 6)
        told = await told_in_node(url, tmp_path)
    assert [item["seq"] for item in items] == [5, 5, 6]
    days = [as_numbers(item["day"]) for item in items]
    truth = 10, *map(Fraction, ("20", "62", "3.1", "3"))
    after = 11, *map(Fraction, ("22", "68.2", "3.1", "3"))
    assert days == [truth, truth, after]
    [[known, _], [newest, _], *_] = told["first"]
    assert [as_numbers(item["day"]) for item in (known, newest)] == [truth, after]


async def told_in_node(url: str, folder: Path) -> dict[str, Any]:
    """Return what callbacks of tick.js got."""
    shutil.copy(STATIC / "tick.js", folder / "tick.mjs")
    shutil.copy(Path(__file__).parent / "js" / "adds_up.mjs", folder)
    script = str(folder / "adds_up.mjs")
    flags = ["--experimental-websocket", "--no-warnings"]
    process = await asyncio.create_subprocess_exec(
        *(node(), *flags, script, url, SAMSUNG), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    told: dict[str, Any] = json.loads(output)
    return told


def made(isin: str, seq: int, chance: Random) -> Item:
    """Return an item: of one trade, of several, or one that was known before."""
    price, size = Decimal(chance.randrange(1, 9)), Decimal(chance.randrange(1, 9))
    fields: dict[str, Any] = {"isin": isin, "seq": seq, "price": price, "size": size}
    trades = chance.randrange(4)
    if trades > 1:
        fields |= {"volume": size * trades, "value": size * trades * price}
        if chance.random() < 0.8:
            fields |= {"high": price + 1, "low": price - 1}
    return {**fields, "trades": trades, "window": seq * 2_000}


def total(items: list[Item]) -> Traded | None:
    """Add up all trades of some items."""
    every = [one for item in items if (one := traded(item)) is not None]
    return reduce(Traded.fold, every) if every else None


@given(st.integers(0, 10**6), st.lists(st.booleans(), min_size=1, max_size=60))
def test_however_slow_a_reader_is_all_trades_are_told_once(
    seed: int, takes: list[bool]
) -> None:
    """And each instrument's last item is the newest."""
    chance, waiting = Random(seed), WaitingItems()
    put: defaultdict[str, list[Item]] = defaultdict(list)
    taken: defaultdict[str, list[Item]] = defaultdict(list)
    for seq, is_taken in enumerate(takes, 1):
        item = made(chance.choice((SAMSUNG, HYNIX, NAVER)), seq, chance)
        put[item["isin"]].append(item)
        waiting.put(item)
        assert len(waiting) <= 3
        if is_taken:
            got = waiting.take()
            taken[got["isin"]].append(got)
    while waiting:
        got = waiting.take()
        taken[got["isin"]].append(got)
    assert taken.keys() == put.keys()
    for isin, items in put.items():
        assert total(taken[isin]) == total(items)
        assert sum(i["trades"] for i in taken[isin]) == sum(i["trades"] for i in items)
        seqs = [item["seq"] for item in taken[isin]]
        assert seqs == sorted(seqs)
        assert seqs[-1] == items[-1]["seq"]
        assert taken[isin][-1]["price"] == items[-1]["price"]


def test_who_has_waited_longest_comes_first() -> None:
    """A busy instrument does not keep a quiet one waiting."""
    waiting = WaitingItems()
    for seq, isin in enumerate((SAMSUNG, HYNIX, SAMSUNG, SAMSUNG)):
        waiting.put(
            {"isin": isin, "seq": seq, "trades": 1, "price": Decimal(1), "size": 1}
        )
    assert [waiting.take()["seq"], waiting.take()["seq"]] == [3, 1]


def test_figures_of_a_group_are_the_newest() -> None:
    """They are of one window each: nothing is added up."""
    waiting = WaitingItems()
    for window in (1, 2):
        waiting.put({"group": "group:market:KOSPI", "window": window, "trades": 5})
    assert waiting.take() == {"group": "group:market:KOSPI", "window": 2, "trades": 5}
    assert not waiting


def test_sums_that_nobody_knows_stay_unknown() -> None:
    """One of two is not both."""
    one = {"isin": SAMSUNG, "price": Decimal(3), "size": Decimal(1), "trades": 1}
    of_three = one | {"trades": 3}
    both = folded(of_three, one)
    assert both["trades"] == 4
    assert traded(both) is None
