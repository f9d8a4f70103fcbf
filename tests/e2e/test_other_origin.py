"""A page that is served elsewhere, with the client: let in, or told why not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page

from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.redis]

# Imports the client from the gateway if it may, or else has a copy beside it.
FOLLOW = """
async ([gateway, from]) => {
  Math.random = () => 0.02;
  const { TickClient } = await import(`${from}/static/tick.js`);
  const seen = (window.seen = { states: [], prices: {}, texts: [] });
  window.ticks = new TickClient(`ws://${gateway}/v1/stream`, {
    onState: (state, text) => { seen.states.push(state); seen.texts.push(text); },
  });
  window.ticks.subscribe(["*"], (item) => { seen.prices[item.isin] = item.price; });
}
"""

ASK = """
async (gateway) => {
  const headers = { Authorization: "Bearer x", "If-None-Match": '"x"' };
  const answer = await fetch(`http://${gateway}/v1/quotes`, { headers });
  return [answer.status, answer.headers.get("ETag"), (await answer.json()).count];
}
"""


@contextmanager
def other_host(gateway: Gateway, port: int = 0) -> Iterator[str]:
    """Serve an empty page and a copy of the client; yield the page's origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_client = self.path == "/static/tick.js"
            body = gateway.fetch(self.path)[1] if is_client else b"<title>mine</title>"
            self.send_response(200)
            kind = "text/javascript" if is_client else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def seen(page: Page) -> dict[str, Any]:
    """Return what the page was told."""
    found: dict[str, Any] = json.loads(page.evaluate("JSON.stringify(window.seen)"))
    return found


def test_a_listed_page_streams_and_asks(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """With the client that the gateway has, and a token in a header."""
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    port = free_port()
    with running_gateway(redis_url, port=port, allowed_origins="*") as gateway:
        gateway.wait_until(publisher.offset)
        with other_host(gateway) as origin:
            page.goto(origin)
            address = f"127.0.0.1:{gateway.port}"
            page.evaluate(FOLLOW, [address, f"http://{address}"])
            eventually(lambda: seen(page)["prices"] == {SAMSUNG: "71900"})
            status, tag, count = page.evaluate(ASK, address)
            assert (status, count) == (200, 1)
            assert tag


def test_a_page_that_is_not_listed_is_told_so(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """With its origin and the setting; a browser says nothing to it."""
    Publisher(client).publish(make_row(SAMSUNG, "71900", 1))
    with (
        running_gateway(redis_url, allowed_origins="https://shop.example") as gateway,
        other_host(gateway) as origin,
    ):
        page.goto(origin)
        page.evaluate(FOLLOW, [f"127.0.0.1:{gateway.port}", origin])
        words = f"this page's origin, {origin}, in TICKTHROTTLE_ALLOWED_ORIGINS"
        eventually(lambda: any(words in text for text in seen(page)["texts"]))
        assert "live" not in seen(page)["states"]


def test_a_page_from_disk_is_told_to_be_served(
    page: Page, redis_url: str, tmp_path: Path
) -> None:
    """It has no origin that a gateway could list."""
    file = tmp_path / "index.html"
    file.write_text("<title>mine</title>")
    with running_gateway(redis_url) as gateway:
        page.goto(file.as_uri())
        address = f"127.0.0.1:{gateway.port}"
        page.evaluate(FOLLOW, [address, f"http://{address}"])
        words = "has no origin, as one opened as a file: serve it, and list its origin"
        eventually(lambda: any(words in text for text in seen(page)["texts"]))
        assert not any("null" in text for text in seen(page)["texts"])


def test_a_gateway_that_is_away_says_nothing_of_the_page(
    page: Page, client: redis.Redis, redis_url: str
) -> None:
    """It comes back, and the page goes on."""
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900", 1))

    def has_been_live() -> bool:
        # However long the page waits before it tries again.
        publisher.publish()
        return "live" in seen(page)["states"]

    port = free_port()
    with running_gateway(redis_url) as other, other_host(other) as origin:
        page.goto(origin)
        page.evaluate(FOLLOW, [f"127.0.0.1:{port}", origin])
        eventually(lambda: seen(page)["states"].count("offline") >= 3)
        with running_gateway(redis_url, port=port, allowed_origins=origin):
            eventually(has_been_live)
        assert not any("ORIGINS" in text for text in seen(page)["texts"])
