"""Rows by position as items, in Python and in tick.js."""

import json
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.app import STATIC
from tests.node import node_command
from tickthrottle_client.row_positions import RowPositions, wire_fields
from tickthrottle_client.tick_client import read_message

ISIN = "KR7005930003"
FIELDS = [
    *("price", "size", "age", "seq", "trades", "side", "cum_volume"),
    *("volume", "value", "high", "low", "revision", "day", "further"),
]
ACK = {"type": "ack", "op": "subscribe", "fields": FIELDS, "names": {"17": ISIN}}


def update(*rows: str, **names: str) -> str:
    """Return the text of an update with rows."""
    named = json.dumps({number.strip("n"): isin for number, isin in names.items()})
    return (
        '{"type":"update","epoch":"k","offset":5,"window":1773964804000,'
        f'"names":{named},"data":[{",".join(rows)}]}}'
    )


WHOLE = (
    '[17,0.30,40,188796,412385123456789012,37,"a,12,b",7.50,9170.0,18.2,199600,0.10,2,'
    '[1773964800000,412,91700.50,1,2,3,null],{"note":"x","rate":2.50}]'
)
ITEM = {
    "isin": ISIN,
    "time": 1773964803811204,
    "seq": 412385123456789012,
    "price": "0.30",
    "size": "40",
    "side": "a,12,b",
    "cum_volume": 7.5,
    "note": "x",
    "rate": 2.5,
    "revision": 2,
    "trades": 37,
    "volume": "9170.0",
    "value": "18.2",
    "high": "199600",
    "low": "0.10",
    "day": {
        "start": 1773964800000,
        "trades": 412,
        "volume": "91700.50",
        "value": "1",
        "high": "2",
        "low": "3",
    },
}
SHORT = {
    **{"isin": "KR7000660001", "time": 1773964804000005, "seq": 3},
    **{"price": "199500", "size": "1.5", "trades": 0},
}
TEXT = update(WHOLE, "[902,199500,1.5,-5,3,0]", n902="KR7000660001")


def plain(value: Any) -> Any:
    """Return a value with its decimals as a page has them."""
    if isinstance(value, dict):
        return {
            name: float(one) if name in ("cum_volume", "rate") else plain(one)
            for name, one in value.items()
        }
    return str(value) if isinstance(value, Decimal) else value


def test_python_makes_the_items_that_objects_would_be() -> None:
    """Every digit, every field, and in the order of objects."""
    positions = RowPositions()
    positions.take(json.loads(json.dumps(ACK)))
    items = (
        plain(read_message(TEXT, positions)["data"][0]),
        plain(read_message(TEXT, positions)["data"][1]),
    )
    assert items == (ITEM, SHORT)
    assert [*items[0]] == [*ITEM]


def test_objects_of_an_older_gateway_stay_what_they_are() -> None:
    """An ack without fields says that rows are objects."""
    positions = RowPositions()
    positions.take({"type": "ack", "op": "subscribe"})
    item = {"isin": ISIN, "time": 5, "seq": 1, "price": 1, "size": 2, "trades": 1}
    message = {"type": "update", "window": 1, "data": [item]}
    read = read_message(json.dumps(message), positions)["data"]
    assert read == [{**item, "price": Decimal(1), "size": Decimal(2)}]
    del item["price"]
    with pytest.raises(KeyError):
        read_message(json.dumps(message), positions)


@pytest.mark.parametrize(
    "row", ["[5,1,1]", "[]", '{"isin":"KR7005930003"}', '[17,"x"]']
)
def test_a_row_that_no_gateway_sends_is_an_error(row: str) -> None:
    """A number without a name, and what is no row."""
    positions = RowPositions()
    positions.take(json.loads(json.dumps(ACK)))
    with pytest.raises(Exception, match=r"."):
        read_message(update(row), positions)


def test_fields_are_asked_for_by_their_names_on_the_wire() -> None:
    """The time in fewer bytes, a day with what adds to it, trades always."""
    assert wire_fields(None) == ["*"]
    assert wire_fields(["isin", "price", "time"]) == ["price", "age", "trades"]
    assert {"volume", "value", "high", "low", "size"} <= {*wire_fields(["day"])}
    with pytest.raises(TypeError, match=r"fields 'price': must be names"):
        wire_fields("price")


CODE = """
import { TickClient } from "./tick.mjs";
class Socket {
  constructor() { globalThis.socket = this; this.sent = []; }
  send(text) { this.sent.push(JSON.parse(text)); }
  close() {}
}
globalThis.WebSocket = Socket;
const [ack, text] = process.argv.slice(2);
const got = {};
const ticks = new TickClient("ws://x/v1/stream", { fields: ["price", "time"] });
ticks.subscribe("*", (item) => { got[item.isin] = item; });
await socket.onopen();
await null;
socket.onmessage({ data: ack });
socket.onmessage({ data: text });
const items = Object.fromEntries(ticks.items);
const asked = [socket.sent[0].fields];
const refusal = { type: "error", id: 1, code: "field_limit" };
socket.onmessage({ data: JSON.stringify(refusal) });
asked.push(socket.sent.at(-1).fields);
console.log(JSON.stringify({ asked, items }));
ticks.close();
process.exit(0);
"""


def test_javascript_makes_the_same_items(tmp_path: Path) -> None:
    """Where all numbers are short, too; and after a refusal it asks for all."""
    shutil.copy(STATIC / "tick.js", tmp_path / "tick.mjs")
    (tmp_path / "try.mjs").write_text(CODE, "utf-8")
    ack = ACK | {"accepted": ["*"], "rejected": []}
    for text in (TEXT, TEXT.replace(WHOLE, "[17,0.3,40,188796,4,1]")):
        run = subprocess.run(
            [*node_command(), "try.mjs", json.dumps(ack), text],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found = json.loads(run.stdout)
        items = [*found["items"].values()]
        if text is TEXT:
            # A number of JavaScript has 53 bits, as ever.
            items[0]["seq"] = ITEM["seq"]
            assert items[0] == ITEM
        assert items[1] == SHORT
        assert found["asked"] == [["price", "age", "trades"], ["*"]]
