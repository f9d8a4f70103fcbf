"""The command that shows a live table of quotes in the terminal."""

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any
from urllib.parse import urlencode

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.commands.entry import fail, failing_on
from cli.commands.setting_options import AsJson
from cli.commands.tables import json_line
from cli.local.pipelines import NotOne
from cli.terminal.gateway_address import (
    NoAnswer,
    TokenFile,
    ask,
    page_of,
    read_token,
    stream_of,
)
from cli.terminal.quote_table import (
    ORDERS,
    Order,
    QuoteLine,
    encode_item,
    in_order,
    read_instruments,
)
from tickthrottle_client import Item, TickClient, TickError
from tickthrottle_client.harmless_text import harmless

REFRESHES_PER_S = 5
ASK_NAMES_S = 1.0
RENEW_NAMES_S = 60.0
"""Names and previous closes are asked for again so often: a day may begin."""

ASKED_AT_ONCE = 500
_FIELDS = "code,name,prev_close"
_COLUMNS = ("code", "name", "price", "change", "%", "size", "trades", "time")
_RIGHT = frozenset({"price", "change", "%", "size", "trades"})
# Korea, and everywhere else.
_COLOURS = {False: {1: "red", -1: "blue"}, True: {1: "green", -1: "red"}}
# The state, the heads, and a line at the end.
_OTHER_LINES = 4


class QuoteView:
    """What is on the screen: the newest item of each instrument, and its name."""

    def __init__(self, keys: Sequence[str], order: Order, is_green_up: bool) -> None:
        self.items: dict[str, Item] = {}
        self.instruments: dict[str, Mapping[str, Any]] = {}
        self.state = "connecting"
        self._keys = ", ".join(keys)
        self._order = order
        self._colours = _COLOURS[is_green_up]
        self.shown: list[str] = []

    def put(self, item: Item) -> None:
        self.items[item["isin"]] = item

    def keep(self, isins: Collection[str]) -> None:
        """Forget instruments that are not followed any more."""
        for isin in self.items.keys() - set(isins):
            del self.items[isin]

    def render(self, height: int) -> Group:
        """Return what a screen with so many lines shows."""
        room = max(1, height - _OTHER_LINES)
        quotes = in_order(
            (
                QuoteLine(item, self.instruments.get(i, {}))
                for i, item in self.items.items()
            ),
            self._order,
        )
        table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
        for column in _COLUMNS:
            justify: Any = "right" if column in _RIGHT else "left"
            ratio: Any = {"no_wrap": True, "overflow": "ellipsis"}
            table.add_column(column, justify=justify, **ratio)
        for quote in quotes[:room]:
            style = self._colours.get(quote.direction, "")
            cells = [harmless(cell) for cell in quote.cells()]
            table.add_row(*(Text(cell, style) for cell in cells))
        self.shown = [str(quote.item["isin"]) for quote in quotes[:room]]
        head = Text(harmless(f"{self._keys}  ·  {self.state}"), "bold")
        more = len(quotes) - len(self.shown)
        rest = f"{more:,} more; a larger terminal shows more" if more > 0 else ""
        return Group(head, table, Text(rest, "dim"))


def watch(
    keys: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY...",
            help="ISINs, codes (005930), markets (market:KOSPI), sectors, or '*'.",
        ),
    ],
    *,
    url: Annotated[
        str | None,
        typer.Option(
            help="A gateway, such as http://127.0.0.1:8000. Without it, that of the "
            "pipeline that runs here."
        ),
    ] = None,
    token_file: TokenFile = None,
    order: Annotated[
        str, typer.Option(help=f"Order of the rows: {', '.join(ORDERS)}.")
    ] = "code",
    green_up: Annotated[
        bool,
        typer.Option("--green-up", help="Up is green and down red, not red and blue."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Follow quotes in the terminal, until Ctrl-C.

    Into a pipe, or with --json, it prints each quote as a line of JSON, as it comes.
    """
    if order not in ORDERS:
        fail(f"order {order!r}: must be one of {', '.join(ORDERS)}", code=2)
    with failing_on(NoAnswer), failing_on(NotOne, ValueError, code=2):
        page, token = page_of(url), read_token(token_file)
    with failing_on(TickError):
        if json or not sys.stdout.isatty():
            asyncio.run(_print_items(page, token, keys))
        else:
            view = QuoteView(keys, order, green_up)
            asyncio.run(_show(page, token, keys, view))


async def _print_items(page: str, token: str | None, keys: Sequence[str]) -> None:
    out = sys.stdout.buffer

    def put(item: Item) -> None:
        out.write(json_line(encode_item(item)) + b"\n")

    client = TickClient(stream_of(page), token=token, on_message=lambda _: out.flush())
    with _until_told(), suppress(asyncio.CancelledError):
        try:
            async with client as ticks:
                ticks.subscribe(keys, put)
                await asyncio.get_running_loop().create_future()
        except BrokenPipeError:
            # Whoever reads has read enough. At its end Python writes what it still has.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _show(
    page: str, token: str | None, keys: Sequence[str], view: QuoteView
) -> None:
    has_news = asyncio.Event()

    def tell(_: str, text: str) -> None:
        view.state = text
        has_news.set()

    client = TickClient(
        stream_of(page),
        token=token,
        on_state=tell,
        on_reset=view.items.clear,
        # A table without a row says it; a line of a log would tear the screen.
        on_nothing=lambda _: None,
        on_message=lambda _: has_news.set(),
    )
    console = Console(highlight=False)
    live = Live(console=console, screen=True, auto_refresh=False)
    with _until_told(), suppress(asyncio.CancelledError), live:
        async with client as ticks, asyncio.TaskGroup() as group:
            ticks.subscribe(keys, view.put)
            group.create_task(_keep_names(page, token, view, has_news))
            while True:
                await has_news.wait()
                has_news.clear()
                view.keep(ticks.items)
                live.update(view.render(console.size.height), refresh=True)
                await asyncio.sleep(1 / REFRESHES_PER_S)


async def _keep_names(
    page: str, token: str | None, view: QuoteView, has_news: asyncio.Event
) -> None:
    """Ask for what the instruments on the screen are called, as long as it is shown."""
    loop = asyncio.get_running_loop()
    renew_at_s = 0.0
    while True:
        if loop.time() >= renew_at_s:
            wanted, renew_at_s = view.shown, loop.time() + RENEW_NAMES_S
        else:
            wanted = [isin for isin in view.shown if isin not in view.instruments]
        if wanted:
            asked = wanted[:ASKED_AT_ONCE]
            query = urlencode({"isins": ",".join(asked), "fields": _FIELDS})
            # What the stream says of a gateway that is away is enough.
            with suppress(NoAnswer):
                address = f"{page}v1/quotes?{query}"
                _, answer = await asyncio.to_thread(ask, address, token)
                for isin in asked:
                    view.instruments.setdefault(isin, {})
                view.instruments |= read_instruments(answer)
                has_news.set()
        await asyncio.sleep(ASK_NAMES_S)


@contextmanager
def _until_told() -> Iterator[None]:
    """Have SIGINT and SIGTERM end the task, as an end that was asked for."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
