"""The chain of windows in a browser: what Python's client checks, tick.js does too."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.conftest import eventually
from tests.gateway.chained import A, B, Market
from tests.gateway.servers import running_gateway
from throttle.testing.driver import ThrottleDriver

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(240)]

# Follows, on a line that alters a message when it is told to.
FOLLOW = """
async (keys) => {
  const Own = WebSocket;
  window.alter = null;
  window.WebSocket = class extends Own {
    set onmessage(take) {
      const altered = (data) => (window.alter ? data.replace(...window.alter) : data);
      super.onmessage = ({ data }) => take({ data: altered(data) });
    }
  };
  const { TickClient } = await import("/static/tick.js");
  window.verdicts = [];
  window.ticks = new TickClient(`ws://${location.host}/v1/stream`, {
    verify: true,
    onChain: (verdict) => window.verdicts.push(verdict),
  });
  window.ticks.subscribe(keys, () => {});
}
"""


class Watcher:
    """A page that checks the chain."""

    def __init__(self, page: Page, market: Market, *keys: str) -> None:
        self.page = page
        self.market = market
        page.goto(f"http://127.0.0.1:{market.gateway.port}/")
        page.evaluate(FOLLOW, [*keys])
        eventually(lambda: self.upto(market.windows))

    def verdicts(self) -> list[dict[str, Any]]:
        """Return what was said."""
        verdicts: list[dict[str, Any]] = self.page.evaluate("window.verdicts")
        return verdicts

    def upto(self, offset: int) -> bool:
        """Tell whether something was said up to an offset."""
        return any(one["offset"] >= offset for one in self.verdicts())

    def trade(self, *isins: str, late: bool = False) -> None:
        """Publish a window and wait until it was looked at."""
        self.market.trade(*isins, late=late)
        eventually(lambda: self.upto(self.market.windows))


def test_a_page_checks_the_chain(page: Page, redis_url: str) -> None:
    """Rows, totals and hashes, across a reconnect; a row that is altered is named."""
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url, heartbeat_ms=200) as gateway,
    ):
        market = Market(driver, gateway)
        market.trade(A, B)
        watcher = Watcher(page, market, "*")
        for isins in ((A, B), (B, A), (), (A,)):
            watcher.trade(*isins)
        watcher.trade(A, late=True)
        assert [one["state"] for one in watcher.verdicts()] == [
            "begins",
            *["holds"] * 5,
        ]
        assert watcher.verdicts()[-1]["hasRows"]
        page.evaluate("window.ticks._lost(null)")
        market.trade(A)
        watcher.trade(B)
        watcher.trade(A, B)
        watcher.trade(B)
        assert {one["state"] for one in watcher.verdicts()[1:]} == {"holds"}
        page.evaluate('window.alter = [\'"side":"B"\', \'"side":"S"\']')
        watcher.trade(A)
        last = watcher.verdicts()[-1]
        assert last["state"] == "broken"
        assert last["reason"] == "its rows are not those that were published"


def test_a_page_of_some_keys_checks_hashes(page: Page, redis_url: str) -> None:
    """Also of windows that bring it nothing."""
    with (
        ThrottleDriver(redis_url=redis_url) as driver,
        running_gateway(redis_url, heartbeat_ms=200) as gateway,
    ):
        market = Market(driver, gateway)
        market.trade(A, B)
        watcher = Watcher(page, market, B)
        for isins in ((A,), (B,), (A, B)):
            watcher.trade(*isins)
        states = [(one["state"], one["hasRows"]) for one in watcher.verdicts()]
        assert states[0] == ("begins", False)
        assert {*states[1:]} == {("holds", False)}
