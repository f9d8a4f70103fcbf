"""The command that shows past windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.arguments import (
    From,
    Isin,
    Limit,
    check_number,
    format_moment,
    parse_moment,
)
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_json, print_table
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from throttle.contract.snapshot import Row, WindowSnapshot

_SUMS = ("trades", "volume", "value", "high", "low")


@options_of(ThrottleSettings, "redis_url")
def windows(
    *,
    from_: From = None,
    to: Annotated[
        str | None, typer.Option(help="End here; a window is named by its end.")
    ] = None,
    limit: Limit = 20,
    rows: Annotated[
        bool, typer.Option("--rows", help="Show the rows, not only their number.")
    ] = False,
    isin: Isin = None,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Show past windows of the window log, the newest last.

    With an instrument: the windows in which it changed, and its row in each. Trades,
    volume, value, high and low are of all trades that a row stands for.
    """
    from cli.commands.open_history import check_published, newest_last, open_past
    from gateway.stream.frames import window_object

    with open_past(settings) as past:
        check_number("limit", limit)
        check_published(isin)
        first_ms, last_ms = parse_moment("from", from_), parse_moment("to", to)
        found = newest_last(
            past.history.windows(first_ms, last_ms, isin, newest_first=from_ is None),
            limit,
            newest_first=from_ is None,
        )
    with_rows = rows or isin is not None
    if json:
        for window in found:
            print_json(window_object(window, with_rows=with_rows))
    else:
        print_windows(found, with_rows=with_rows)


def sum_cells(row: Row) -> list[str]:
    """Return what a row says of all its trades, a dash where nobody knows it."""
    texts = row.row_sums.encode().decode().split(",")
    return texts + ["-"] * (len(_SUMS) - len(texts))


def print_windows(windows: Sequence[WindowSnapshot], *, with_rows: bool) -> None:
    """Print some windows, one a line; or their rows."""
    if with_rows:
        print_table(
            ["offset#", "window", *(f"{name}#" for name in _SUMS), "row"],
            [
                (
                    *(window.offset, format_moment(window.window)),
                    *sum_cells(row),
                    row.body,
                )
                for window in windows
                for row in window.rows
            ],
        )
        return
    print_table(
        ["offset#", "window", "rows#", "trades#", "after its end#", "epoch"],
        [
            (
                *(window.offset, format_moment(window.window), len(window.rows)),
                window.trades,
                f"{window.published_us // 1000 - window.window} ms",
                window.epoch,
            )
            for window in windows
        ],
    )
