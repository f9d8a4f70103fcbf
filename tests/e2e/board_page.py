"""The market board in a browser, and who publishes to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from playwright.sync_api import Locator, Page, expect

from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import FIRST_WINDOW, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import encode_version

NAMES = """isin,code,name,market,sector,prev_close
KR7005930003,005930,삼성전자,KOSPI,반도체,200000
KR7000660001,000660,SK하이닉스,KOSPI,반도체,900000.50
"""


# Resolves when the page has this width and has drawn itself anew for it: its table is
# measured in one frame and drawn in the next.
SETTLED = """async (width) => {
  const frame = () => new Promise(requestAnimationFrame);
  while (innerWidth !== width) await frame();
  for (let i = 0; i < 5; i += 1) await frame();
}"""


class Board:
    """The page, who publishes to it, and the gateway between them."""

    def __init__(self, page: Page, publisher: Publisher, gateway: Gateway) -> None:
        self.page = page
        self.publisher = publisher
        self.gateway = gateway
        self.url = f"http://127.0.0.1:{gateway.port}/"
        self.prices: dict[str, str] = {}
        self.hosts: set[str | None] = set()
        self._seq = 0
        page.on("request", lambda r: self.hosts.add(urlsplit(r.url).hostname))
        page.on("websocket", lambda w: self.hosts.add(urlsplit(w.url).hostname))

    def publish(self, **prices: str) -> None:
        """Publish one window of prices."""
        self._seq += 1
        self.prices |= prices
        rows = [make_row(i, p, self._seq, trades=37) for i, p in prices.items()]
        self.publisher.publish(*rows)

    def publish_touched(self, isin: str, price: str, *touched: str) -> None:
        """Publish an instrument's window: other prices, then the one it ends with."""
        self._seq += 1
        self.prices[isin] = price
        self._publish_sums(isin, price, *touched)

    def publish_late(self, isin: str, price: str) -> None:
        """Publish a window with a late trade of the last published instrument."""
        self._publish_sums(isin, price)

    def _publish_sums(self, isin: str, *prices: str) -> None:
        amounts = reduce(Amounts.fold, (Amounts.of_trade(p, "40") for p in prices))
        sums = RowSums(len(prices), amounts).encode()
        row = make_row(isin, self.prices[isin], self._seq)
        self.publisher.publish(row._replace(sums=sums))

    def open(self, fragment: str = "") -> None:
        """Open the page and wait until it is live."""
        self.page.goto(self.url + fragment)
        # On a busy machine loading takes longer than a page stays live by itself.
        self.publisher.publish()
        self.is_live()

    def is_live(self) -> None:
        """Wait until the page is live, in whatever language it says so."""
        state = self.page.locator("#state")
        expect(state).to_have_attribute("data-kind", "live")

    def resize(self, width: int) -> None:
        """Make the window this wide; wait until columns and rows follow it."""
        self.page.set_viewport_size({"width": width, "height": 780})
        self.page.evaluate(SETTLED, width)

    def revive(self) -> bool:
        """Publish a window; return whether the page is live."""
        self.publish(**{SAMSUNG: str(self._seq)})
        return self.page.locator("#state").inner_text() == "Live"

    def is_in_state(self, state: str) -> None:
        """Wait until the pill says so."""
        expect(self.page.locator("#state")).to_have_text(state)

    def row(self, isin: str) -> Locator:
        """Return an instrument's row."""
        return self.page.locator(f"#row-{isin}")

    def shown(self) -> dict[str, str]:
        """Return the price of every instrument whose row is in the document.

        It has every digit: in its title, if what is shown leaves some out.
        """
        found: dict[str, str] = self.page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("#rows tr")].map(
              (row) => [row.id.slice(4), row.querySelector(".price")])
              .map(([isin, price]) => [isin, price.title || price.textContent]))"""
        )
        return {isin: price.replace(",", "") for isin, price in found.items()}

    def history(self, isin: str) -> list[str]:
        """Return the prices the gateway's history has of an instrument."""
        _, body = self.gateway.get(f"/v1/instruments/{isin}/windows")
        return [point["price"] for point in json.loads(body, parse_int=str)["data"]]

    def isins(self) -> list[str]:
        """Return the instruments in the order of their rows."""
        return list(self.shown())

    def is_right(self) -> None:
        """Wait until the page shows each instrument's newest price, and no other."""
        eventually(lambda: self.shown() == self.prices)


def publish_trade(board: Board, seq: int, isin: str, price: str, **day: int) -> None:
    """Publish a window with one trade that says what was traded up to it."""
    time_us = FIRST_WINDOW * 1_000 + seq
    body: dict[str, Any] = {"isin": isin, "time": time_us, "seq": seq}
    text = json.dumps(body)[:-1] + f', "price": {price}, "size": 40'
    for name, amount in day.items():
        text += f', "cum_{name}": {amount}'
    row = Row(isin, encode_version(time_us, seq, seq), b"1", (text + "}").encode())
    board.publisher.publish(row)
    board.prices[isin] = price


@contextmanager
def running_board(
    page: Page,
    client: redis.Redis,
    instruments: Path,
    prices: dict[str, str],
    market_hours: str = "",
) -> Iterator[Board]:
    """Run a gateway with an instrument list and these prices; open its board."""
    at = client.connection_pool.connection_kwargs
    url = f"redis://{at['host']}:{at['port']}/{at['db']}"
    publisher, port = Publisher(client), free_port()
    publisher.list_instruments(instruments.read_text("utf-8"))
    settings = {"heartbeat_ms": 500, "market_hours": market_hours}
    with running_gateway(url, port=port, **settings) as gateway:
        board = Board(page, publisher, gateway)
        board.publish(**prices)
        gateway.wait_until(publisher.offset)
        board.open()
        yield board
        assert board.hosts == {"127.0.0.1"}
