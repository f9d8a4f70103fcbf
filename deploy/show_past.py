"""Shows the past: windows, trades of the log, dead letters.

Prices and sizes keep their text: a row's JSON is passed on as bytes.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import orjson

from deploy.arguments import Place, format_moment
from deploy.show import print_table, shorten
from ingest.trade import InvalidTrade, Trade
from throttle.batch import DeadLetter
from throttle.rebuild import Entry
from throttle.snapshot import WindowSnapshot


def print_windows(windows: Sequence[WindowSnapshot], *, with_rows: bool) -> None:
    """Print some windows, one a line; or their rows."""
    if with_rows:
        print_table(
            ["offset#", "window", "trades#", "row"],
            [
                (window.offset, format_moment(window.window), row.trades, row.body)
                for window in windows
                for row in window.rows
            ],
        )
        return
    print_table(
        ["offset#", "window", "issues#", "trades#", "after its end#", "epoch"],
        [
            (
                *(window.offset, format_moment(window.window), len(window.rows)),
                sum(row.trades for row in window.rows),
                f"{window.published_us // 1000 - window.window} ms",
                window.epoch,
            )
            for window in windows
        ],
    )


def trade_object(
    entry: Entry, judged: Trade | InvalidTrade, *, is_decoded: bool = False
) -> bytes:
    """Return an entry of the log for JSON: its trade, or why it is refused.

    What is not JSON in the log (``is_decoded``) is shown as what it stands for.
    """
    head = _place_object(entry)
    if isinstance(judged, Trade):
        wire = judged.to_wire() if is_decoded else entry.payload
        return orjson.dumps({**head, "trade": orjson.Fragment(wire)})
    why = {"reason": judged.reason, "error": str(judged)}
    return orjson.dumps({**head, **why, **_payload_object(entry.payload)})


def print_trades(entries: Sequence[tuple[Entry, Trade | InvalidTrade]]) -> None:
    """Print some entries of the log, one a line."""
    print_table(
        ["position", "appended", "isin", "time", "seq#", "price#", "size#", "more"],
        [
            (
                Place(entry.partition, entry.position),
                format_moment(entry.append_ms),
                *_trade_cells(judged),
            )
            for entry, judged in entries
        ],
    )


def letter_object(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter for JSON; its bytes as text, or else in base 64."""
    return {
        **_place_object(letter),
        "reason": letter.reason,
        "error": letter.error,
        **_payload_object(letter.payload),
    }


def print_letters(letters: Sequence[DeadLetter]) -> None:
    """Print some dead letters, one a line."""
    print_table(
        ["position", "appended", "reason", "error", "payload"],
        [
            (
                Place(letter.partition, letter.position),
                format_moment(letter.append_ms),
                *(letter.reason, letter.error, shorten(letter.payload)),
            )
            for letter in letters
        ],
    )


def _trade_cells(judged: Trade | InvalidTrade) -> tuple[object, ...]:
    if isinstance(judged, InvalidTrade):
        return ("", "", "", "", "", f"refused, {judged.reason}: {judged}")
    return (
        *(judged.isin, judged.time_us, judged.seq, judged.price, judged.size),
        orjson.dumps(judged.extra).decode() if judged.extra else "",
    )


def _place_object(one: Entry | DeadLetter) -> dict[str, Any]:
    place = str(Place(one.partition, one.position))
    return {"position": place, "append_ms": one.append_ms}


def _payload_object(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": b64encode(payload).decode()}
