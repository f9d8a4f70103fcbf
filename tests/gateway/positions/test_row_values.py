"""What a row says, value by value: the bytes that came."""

import json

from gateway.positions.row_values import RowValues
from tests.gateway.samples import FIRST_WINDOW, make_row
from throttle.contract.row_sums import ONE

SUMS = b"37,9170.5,1829145000000000000000000.000000000000000001,199600,0.30"


def encode(
    names: str, sums: bytes = ONE, day: bytes = b"", price: str = "0.30", **extra: str
) -> bytes:
    """Return the row of instrument 7 with these fields."""
    body = make_row(price=price, seq=5, **extra).body
    row = RowValues.of(body, sums, day, FIRST_WINDOW)
    return row.encode(7, [name.encode() for name in names.split()])


def test_no_digit_is_touched() -> None:
    """Neither of a price, nor of a sum."""
    assert encode("price size") == b"[7,0.30,40]"
    wanted = b"[7,%b]" % SUMS
    assert encode("trades volume value high low", SUMS) == wanted


def test_time_is_told_from_the_windows_end() -> None:
    """In fewer digits; whoever wants the time itself has it."""
    time_us = FIRST_WINDOW * 1_000 + 5
    assert encode("age time seq") == b"[7,-5,%d,5]" % time_us


def test_what_is_not_there_is_null_and_left_out_at_the_end() -> None:
    """A row of one trade ends with it; one without a range says no range."""
    assert encode("trades volume high side") == b"[7,1]"
    assert encode("high trades low", b"2,40,7980000,,") == b"[7,null,2]"
    assert encode("volume trades") == b"[7,null,1]"
    assert encode("revision") == b"[7]"


def test_a_day_is_a_list() -> None:
    """Null where no trade counts for the range or the last price."""
    whole = b"1773964800000,412,91700,18291450000,199900,198700,199000"
    assert encode("day", day=whole) == b"[7,[%b]]" % whole
    assert encode("day", day=b"5,1,0,0,,,") == b"[7,[5,1,0,0,null,null,null]]"


def test_what_has_no_position_is_in_further() -> None:
    """As it came, whatever is in its text; a name of ours among it, too."""
    odd = {"side": "B", "note": 'a,"price":1,\\', "age": "old", "é": "x"}
    row = json.loads(encode("price side further", **odd))
    assert row == [7, 0.3, "B", {n: v for n, v in odd.items() if n != "side"}]
    assert encode("side further", side="B") == b'[7,"B"]'
    assert json.loads(encode("note", **odd)) == [7, odd["note"]]


def test_a_body_may_be_any_json() -> None:
    """With spaces, in another order; what it does not say is null."""
    odd = (
        b'{ "price": 0.30, "isin" : "KR7005930003", "cum": 12 ,"size":40, '
        b'"note": "a, b",\n"time": 1773964802000005,"seq": 5}'
    )
    names = b"price size age seq trades cum further".split()
    row = RowValues.of(odd, ONE, b"", FIRST_WINDOW)
    assert row.encode(7, names) == b'[7,0.30,40,-5,5,1,12,{"note":"a, b"}]'
    assert RowValues.of(b'{"x":1}', ONE, b"", None).encode(7, names) == (
        b'[7,null,null,null,null,1,null,{"x":1}]'
    )
