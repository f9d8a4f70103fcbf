"""What waits is one item of each instrument, and no trade is lost or told twice."""

from collections import defaultdict
from decimal import Decimal
from functools import reduce
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.samples import HYNIX, NAVER, SAMSUNG
from tickthrottle_client import Item, Traded, traded
from tickthrottle_client.waiting_items import WaitingItems, folded


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
