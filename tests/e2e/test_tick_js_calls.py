"""What those who call the client for web pages may do, and may get wrong."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from playwright.sync_api import Page

from tests.conftest import eventually
from tests.e2e.proxy import Proxy, take_all
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway

pytestmark = [pytest.mark.browser, pytest.mark.redis]

BEGIN = """
async (options) => {
  const { TickClient } = await import("/static/tick.js");
  const seen = { states: [], texts: [], acks: [], prices: {}, errors: [] };
  seen.rejected = [];
  window.seen = seen;
  addEventListener("error", (event) => {
    seen.errors.push(event.message);
    event.preventDefault();
  });
  window.ticks = new TickClient(`ws://${location.host}/v1/stream`, {
    ...options,
    onState(state, text) { seen.states.push(state); seen.texts.push(text); },
    onRejected(rejected) { seen.rejected.push(...rejected); },
    onMessage(message) { if (message.type === "ack") seen.acks.push(message); },
  });
  window.put = (item) => { seen.prices[item.isin] = item.price; };
}
"""


class Caller:
    """A page with a client that nobody has asked anything of, and who publishes."""

    def __init__(self, page: Page, publisher: Publisher, gateway: Gateway) -> None:
        self.page = page
        self.publisher = publisher
        self._gateway = gateway

    def begin(self, **options: Any) -> None:
        """Make the client."""
        self.page.goto(f"http://127.0.0.1:{self._gateway.port}/")
        self.page.evaluate(BEGIN, options)

    def seen(self) -> dict[str, Any]:
        """Return what the callbacks got."""
        text = self.page.evaluate("JSON.stringify(window.seen)")
        found: dict[str, Any] = json.loads(text)
        return found

    def publish(self, price: str, seq: int) -> None:
        """Publish a price of two instruments."""
        rows = (make_row(isin, price, seq) for isin in (SAMSUNG, HYNIX))
        self.publisher.publish(*rows)

    def is_live(self) -> bool:
        """Publish a window; say whether the client is live: a page may load slowly."""
        self.publisher.publish()
        return bool(self.seen()["states"][-1] == "live")


@pytest.fixture
def caller(page: Page, client: redis.Redis, redis_url: str) -> Iterator[Caller]:
    """Of a gateway whose clients may hold two keys."""
    publisher = Publisher(client)
    with running_gateway(redis_url, max_keys=2) as gateway:
        caller = Caller(page, publisher, gateway)
        caller.publish("1.50", 1)
        gateway.wait_until(publisher.offset)
        yield caller


def test_a_callback_that_throws_keeps_nothing_from_the_others(caller: Caller) -> None:
    """Its error is reported, as that of an event's listener."""
    caller.begin()
    caller.page.evaluate(
        """(isins) => {
          ticks.subscribe(isins, () => { throw new Error("mine"); });
          ticks.subscribe(isins, put);
        }""",
        [SAMSUNG, HYNIX],
    )
    eventually(lambda: caller.seen()["prices"] == {SAMSUNG: "1.50", HYNIX: "1.50"})
    caller.publish("2.50", 2)
    eventually(lambda: caller.seen()["prices"] == {SAMSUNG: "2.50", HYNIX: "2.50"})
    assert {*caller.seen()["errors"]} == {"Uncaught Error: mine"}
    assert len(caller.seen()["errors"]) == 4


def test_one_key_need_not_be_a_list(caller: Caller) -> None:
    """And several may be anything that can be gone through."""
    caller.begin()
    subscribe = "(keys) => { window.stop = ticks.subscribe(keys, put); }"
    caller.page.evaluate(subscribe, SAMSUNG)
    eventually(lambda: caller.seen()["prices"] == {SAMSUNG: "1.50"})
    several = "(key) => { window.end = ticks.subscribe(new Set([key]), put); }"
    caller.page.evaluate(several, HYNIX)
    eventually(lambda: HYNIX in caller.seen()["prices"])
    caller.page.evaluate("() => { stop(); end(); }")
    eventually(lambda: caller.seen()["acks"][-1]["count"] == 0)
    assert caller.seen()["rejected"] == []


def test_what_is_ended_too_fast_is_dropped_all_the_same(caller: Caller) -> None:
    """The gateway put the message off, and said so: nobody is sent more for ever."""
    caller.begin()
    caller.page.evaluate("(key) => { window.stop = ticks.subscribe(key, put); }", HYNIX)
    eventually(lambda: HYNIX in caller.seen()["prices"])
    caller.page.evaluate(
        """() => {
          for (let n = 0; n < 25; n++) ticks._send({ op: "ping" });
          stop();
        }"""
    )
    eventually(lambda: caller.seen()["acks"][-1]["count"] == 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("ticks.subscribe([5930], put)", "key 5930: must be text"),
        ("ticks.subscribe([''], put)", "key : must be text"),
        ("ticks.bars('1m', [null], put)", "key null: must be text"),
        ("ticks.subscribe('*')", "callback undefined: must be a function"),
        ("ticks.bars('1m', '*', {last: 3})", "callback [object Object]: must be"),
        ("ticks.trades('*', 'put')", "callback put: must be a function"),
        ("(ticks.close(), ticks.subscribe('*', put))", "this client was closed"),
        ("(ticks.close(), ticks.bars('1m', '*', put))", "this client was closed"),
    ],
)
def test_a_call_that_cannot_be_meant_throws(
    caller: Caller, call: str, words: str
) -> None:
    """At once, and not as silence."""
    caller.begin()
    said = caller.page.evaluate(
        f"() => {{ try {{ {call} }} catch (e) {{ return e.message }} }}"
    )
    assert words in said


def test_who_asks_for_too_many_keys_is_told_and_is_live(caller: Caller) -> None:
    """It stayed as if it were still connecting; what is refused is asked in halves."""
    caller.begin()
    keys = [SAMSUNG, HYNIX, "KR7035420009"]
    caller.page.evaluate("(keys) => { ticks.subscribe(keys, put); }", keys)
    eventually(caller.is_live)
    eventually(lambda: caller.seen()["rejected"])
    assert {r["code"] for r in caller.seen()["rejected"]} == {"key_limit"}


def test_updates_may_be_asked_for_less_often(caller: Caller) -> None:
    """The gateway grants whole windows; bars do not undo it."""
    caller.begin(minIntervalMs=4_000)
    both = "(isin) => { ticks.subscribe(isin, put); ticks.bars('1m', isin, put); }"
    caller.page.evaluate(both, SAMSUNG)
    granted = eventually(
        lambda: (
            (acks := caller.seen()["acks"])[1:] and [a["min_interval_ms"] for a in acks]
        )
    )
    assert granted == [4_000, 4_000]


def test_silence_is_told_before_the_line_is_given_up(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """Three windows without a word; what comes then is live again."""
    publisher = Publisher(client, window_ms=500)
    with running_gateway(redis_url, heartbeat_ms=2_000) as gateway:
        proxy = Proxy(gateway.port, take_all)
        caller = Caller(page, publisher, gateway)
        caller.publish("1.50", 1)
        page.goto(f"http://127.0.0.1:{proxy.port}/")
        page.evaluate(BEGIN, {})
        page.evaluate("(isin) => { ticks.subscribe(isin, put); }", SAMSUNG)

        def state() -> str:
            # The page may take longer to load than the feed may be silent.
            publisher.publish()
            newest: str = caller.seen()["states"][-1]
            return newest

        eventually(lambda: state() == "live")
        told = "[ticks.windowMs, ticks.lastWindow, ticks.ageMs > 0]"
        expected = [500, publisher.window, True]
        eventually(lambda: page.evaluate(told) == expected)
        proxy.pause()

        def texts() -> list[str]:
            # Windows go on: it is the line that is dead.
            publisher.publish()
            told: list[str] = caller.seen()["texts"]
            return told

        # It is said for a moment only, before the line is given up.
        eventually(lambda: "nothing came for 3.5 s" in texts())
        proxy.resume()
        eventually(lambda: texts()[-1] == "live")
        proxy.close()
