"""Prices on pages of one's own, made as the page of the documents says it."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Page

from gateway.admission.tokens import CLOCK_SKEW_S, TokenReader
from tests.conftest import eventually, skip_or_fail
from tests.doc_pages import blocks_in, section_of
from tests.e2e.conftest import browser, page, visitor
from tests.gateway.issuer import SECRET, make_token
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import running_gateway
from tests.newcomer.roads import (
    FRAMEWORKS,
    OWN_PAGE,
    Newcomer,
    framework_page,
    plain_page,
)
from tests.ports import free_port

__all__ = ["browser", "page", "visitor"]

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.timeout(300)]


@contextmanager
def newcomer_at(
    redis_url: str, folder: Path, listed: str | None = None
) -> Iterator[Newcomer]:
    """Run a gateway that lists the page that a newcomer makes, or others instead."""
    newcomer = Newcomer(folder, free_port())
    origins = newcomer.origins if listed is None else listed
    with running_gateway(
        redis_url, port=newcomer.gateway_port, allowed_origins=origins
    ) as gateway:
        gateway.wait_for("reloads")
        yield newcomer


def test_six_lines_are_a_page(
    page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Three steps, and each price that comes is shown, at the address as printed."""
    # Asked for by the browser alone.
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    with newcomer_at(redis_url, tmp_path) as newcomer, plain_page(newcomer) as address:
        page.goto(address)
        title = page.locator("h1")
        eventually(lambda: title.text_content() == "71900")
        publisher.publish(make_row(SAMSUNG, "71950.50", 2))
        eventually(lambda: title.text_content() == "71950.50")

        def is_live() -> bool:
            publisher.publish()
            return page.locator("p").text_content() == "live"

        eventually(is_live)
    assert len(newcomer.steps) == 3


@pytest.mark.parametrize("listed", ["", "https://shop.example"])
def test_a_plain_page_that_is_not_listed_shows_why(
    listed: str, page: Page, redis_url: str, tmp_path: Path
) -> None:
    """With the setting and the origin to add; it imports the client all the same."""
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    with (
        newcomer_at(redis_url, tmp_path, listed) as newcomer,
        plain_page(newcomer) as address,
    ):
        page.goto(address)
        words = f"origin, {address}, in TICKTHROTTLE_ALLOWED_ORIGINS; reconnecting"
        eventually(lambda: words in (page.locator("p").text_content() or ""))


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_page_of_a_framework(
    framework: str, page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """With all its checks of development on; and it can be built."""
    if shutil.which("npm") is None:
        skip_or_fail("no npm on PATH")
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    with (
        newcomer_at(redis_url, tmp_path) as newcomer,
        framework_page(newcomer, framework) as address,
    ):
        page.goto(address)
        shown = page.locator("h1")
        eventually(lambda: shown.all_text_contents() == [f"{SAMSUNG} 71900"], 30)
        seqs = iter(range(2, 1_000))

        def is_live() -> bool:
            publisher.publish(make_row(SAMSUNG, "71950.50", next(seqs)))
            return page.locator("p").first.text_content() == "live"

        eventually(is_live)
        eventually(lambda: shown.all_text_contents() == [f"{SAMSUNG} 71950.50"])
        if framework == "React":
            assert "<StrictMode>" in (newcomer.folder / "src/main.jsx").read_text()
        newcomer.type_in("npm run build")
        if framework == "React":
            newcomer.save(CHOOSING)
            check_keys_change(page, address, publisher)


CHOOSING = """// src/App.jsx
import { useState } from "react";
import { useQuotes } from "./useQuotes.js";

export default function App() {
  const [keys, choose] = useState(["KR7005930003"]);
  window.choose = choose;
  return [...useQuotes(...keys).keys()].map((isin) => <h1 key={isin}>{isin}</h1>);
}
"""


def check_keys_change(page: Page, address: str, publisher: Publisher) -> None:
    """Quotes of other keys are shown no more, and no key at all is no fault."""
    shown = page.locator("h1")

    def is_new() -> bool:
        page.goto(address)
        return bool(page.evaluate("'choose' in window"))

    def choose(*keys: str) -> None:
        page.evaluate("(keys) => window.choose(keys)", list(keys))

    eventually(is_new)
    eventually(lambda: shown.all_text_contents() == [SAMSUNG])
    # Nobody has traded it yet.
    choose(HYNIX)
    eventually(lambda: shown.all_text_contents() == [])
    publisher.publish(make_row(HYNIX, "199400", 1))
    eventually(lambda: shown.all_text_contents() == [HYNIX])
    choose()
    eventually(lambda: shown.all_text_contents() == [])
    choose(SAMSUNG, HYNIX)
    eventually(lambda: {*shown.all_text_contents()} == {SAMSUNG, HYNIX})


FOLLOW = """
async () => {
  const { follow } = await import("/events.js");
  window.seen = [];
  follow("KR7005930003", (frame) => window.seen.push(frame));
}
"""


@contextmanager
def login(newcomer: Newcomer, code: str) -> Iterator[list[float]]:
    """Serve a page whose tickets open streams that last a moment; yield when."""
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = "text/html", "<title>mine</title>"
            if self.path == "/events.js":
                kind, body = "text/javascript", code
            if self.path == "/ticket":
                asked.append(time.time())
                # The stream ends in three seconds, and cannot be opened once more.
                kind, body = (
                    "text/plain",
                    make_token(
                        3 - CLOCK_SKEW_S,
                        tick={"open_until": time.time() + 2 - CLOCK_SKEW_S},
                    ),
                )
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", newcomer.port), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_events_go_on_with_a_new_ticket(
    page: Page, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """After the first one is over, from where they were, with every digit."""
    key = tmp_path / "token.key"
    key.write_text(SECRET)
    newcomer = Newcomer(tmp_path, free_port())
    [code] = blocks_in(section_of(OWN_PAGE, "Events with a login"), "js")
    code = code.replace("127.0.0.1:8000", f"127.0.0.1:{newcomer.gateway_port}")
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "71900", 1))
    with (
        running_gateway(
            redis_url,
            port=newcomer.gateway_port,
            allowed_origins=f"http://127.0.0.1:{newcomer.port}",
            token_key_file=key,
        ) as gateway,
        login(newcomer, code) as asked,
    ):
        gateway.wait_for("reloads")
        page.goto(f"http://127.0.0.1:{newcomer.port}")
        page.evaluate(FOLLOW)

        def frames(kind: str) -> list[dict[str, Any]]:
            seen = json.loads(page.evaluate("JSON.stringify(window.seen)"))
            return [frame for frame in seen if frame["type"] == kind]

        eventually(lambda: len(frames("snapshot")) == 1)
        eventually(lambda: len(asked) > 1, 30)
        publisher.publish(make_row(SAMSUNG, "71950.50", 2))
        eventually(lambda: len(frames("snapshot")) > 1, 30)
        prices = [
            item["price"]
            for kind in ("snapshot", "update")
            for frame in frames(kind)
            for item in frame["data"]
        ]
        assert prices == ["71900", "71950.50"]
        assert frames("ack")[1]["resumed"]


def test_the_login_of_the_page_signs_tickets_that_open_streams() -> None:
    """With the library that it names."""
    [code] = blocks_in(section_of(OWN_PAGE, "Events with a login"), "python")
    names: dict[str, Any] = {}
    exec(code, names)
    grant = TokenReader(SECRET, "HS256").read_ticket(names["make_ticket"](SECRET))
    assert grant.expires_us is not None
