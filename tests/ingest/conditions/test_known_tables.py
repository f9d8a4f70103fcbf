"""The tables that come with the product, and ten trades of each of their rows."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from ingest.conditions.known_tables import TABLES, find_table, updates_of
from ingest.conditions.rule_table import BadTable
from ingest.conditions.sale_rules import Sale, SaleRules
from ingest.trade import Trade
from tests.paths import ROOT

ISIN = "US0378331005"
T0_US = 1_795_617_000_000_000
"""2026-11-25, 09:30 in New York."""
FOLDER = ROOT / "ingest" / "conditions"


class Shown(NamedTuple):
    """What a tape comes to."""

    last: str | None
    high: Decimal | None
    low: Decimal | None
    volume: int


def rows() -> Iterator[dict[str, str]]:
    """Yield the rows of all tables, read without the product."""
    for path in sorted(FOLDER.glob("*.csv")):
        lines = [x for x in path.read_text("utf-8").splitlines() if x[:1] != "#"]
        for row in csv.DictReader(lines):
            yield {"plan": "", **row, "table": path.stem}


def label(row: dict[str, str]) -> str:
    """Return what a row is called in the report of a test."""
    return f"{row['table']}:{row['plan']}:{row['code']}"


ROWS = list(rows())


def shown(table: str, tape: list[tuple[str, str, str]], plan: str) -> Shown:
    """Return what trades come to: of codes, prices and markets, of ten shares each.

    A plain fold of what the rules say that they count for.
    """
    rules = SaleRules(find_table(table), is_whole=True)
    last, prices, volume = None, [], 0
    for place, (code, price, market) in enumerate(tape):
        trade = Trade(ISIN, T0_US + place, place, price, "10")
        trade = rules.apply(trade, Sale(code, plan, market))
        counts = trade.updates
        last = trade.price if counts.last else last
        prices += [Decimal(trade.price)] if counts.range else []
        volume += 10 if counts.volume else 0
    high, low = (max(prices), min(prices)) if prices else (None, None)
    return Shown(last, high, low, volume)


UP = [str(price) for price in range(101, 111)]
"""Ten prices, the highest last."""


def as_written(row: dict[str, str], first: bool, own: bool) -> Shown:
    """Return what the row itself says of ten trades at 101 to 110, by hand.

    ``first``: no trade of the day came before; ``own``: one of the same market set the
    last price before them.
    """
    last = {
        "yes": "110",
        "no": None,
        "first_only": "101" if first else None,
        "own_market": "110" if first or own else None,
    }[row["last"]]
    has_range = row["range"] == "yes"
    high, low = (Decimal(110), Decimal(101)) if has_range else (None, None)
    return Shown(last, high, low, 100 if row["volume"] == "yes" else 0)


def test_ten_trades_of_a_condition_come_to_what_its_row_says() -> None:
    for row in ROWS:
        tape = [(row["code"], price, "V") for price in UP]
        expected = as_written(row, first=True, own=True)
        assert shown(row["table"], tape, row["plan"]) == expected, label(row)


@pytest.mark.parametrize("own", [True, False])
def test_behind_an_ordinary_trade_they_come_to_the_same_or_less(own: bool) -> None:
    """The ordinary trade is of 105.5, in the middle of their range."""
    middle = Decimal("105.5")
    for row in ROWS:
        tape = [("", "105.5", "V" if own else "N")]
        tape += [(row["code"], price, "V") for price in UP]
        ten = as_written(row, first=False, own=own)
        expected = Shown(
            ten.last or "105.5", ten.high or middle, ten.low or middle, ten.volume + 10
        )
        assert shown(row["table"], tape, row["plan"]) == expected, label(row)


@pytest.mark.parametrize(
    ("tape", "codes", "updates"),
    [
        ("A", "B", "volume"),
        ("C", "B", "last,range,volume"),
        ("C", ["@", "T", "U"], "volume"),
        ("3", "@FTI", "volume"),
        ("B", [" "], "last,range,volume"),
        ("C", "@ Z", "range,volume"),
        ("A", "9", "last,range"),
        ("C", "M", "none"),
        ("A", "B 9", "none"),
        ("C", "?", "volume"),
        ("Q", "@", None),
        ("Q", "", "last,range,volume"),
    ],
)
def test_a_decoder_gets_the_field(
    tape: str, codes: str | list[str], updates: str | None
) -> None:
    if updates is None:
        with pytest.raises(ValueError, match="tape 'Q': must be a tape of the table"):
            updates_of("us_equities", codes, tape)
    else:
        assert updates_of("us_equities", codes, tape) == updates


def test_both_us_tables_say_the_same_of_the_same_condition() -> None:
    """Which letters a number stands for is in its row."""
    letters = {(row["plan"], row["code"]): row for row in rows() if row["plan"]}
    # Letters that mean something else now, or are not in use.
    old = {"6", "31", "33", "35", "55"}
    for row in rows():
        pairs = row.get("sip", "").split() if row["code"] not in old else []
        for plan, code in zip(pairs[::2], pairs[1::2], strict=True):
            other = letters[plan, code]
            for column in ("last", "range", "volume"):
                assert row[column] == other[column], (row["code"], plan, code)


def test_our_tables_are_dated_and_name_their_sources() -> None:
    assert set(TABLES) == {"krx", "us_equities", "us_equities_numeric"}
    for name in TABLES:
        head = (FOLDER / f"{name}.csv").read_text("utf-8").split("\ncode,")[0]
        assert "2026-" in head
        assert "Source" in head


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("us", "'us': is no table; there are krx, us_equities, us_equities_numeric"),
        ("./none.csv", "./none.csv: cannot be read: No such file or directory"),
    ],
)
def test_a_table_that_is_not_there_is_told(name: str, rule: str) -> None:
    with pytest.raises(BadTable) as caught:
        find_table(name)
    assert str(caught.value).startswith(rule)


def test_a_user_s_table_is_read_and_its_fault_told(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("\ufeffcode,last,range,volume\nAVG,no,no,yes\n", "utf-8")
    assert updates_of(str(path), "AVG") == "volume"
    for content, rule in (
        (b"\xff", "must be UTF-8"),
        (b"x" * 2**21, "has over 1048576 bytes"),
        (b"code,last\n", "its header has no column 'range'"),
    ):
        bad = tmp_path / f"{len(content)}.csv"
        bad.write_bytes(content)
        with pytest.raises(BadTable, match=f"{len(content)}.csv: {rule}"):
            find_table(str(bad))
