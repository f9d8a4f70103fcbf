"""The site: built strictly, every link and anchor of it, nothing from elsewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.conftest import skip_or_fail
from tests.e2e.conftest import browser
from tests.paths import ROOT

__all__ = ["browser"]

pytestmark = pytest.mark.slow

PHONE: ViewportSize = {"width": 390, "height": 844}
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Collects a page's anchors, its links, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take one element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") != "canonical":
            self.loads.append(given["href"])
        if LOADS.get(tag) in given:
            self.loads.append(given[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make site`` builds it."""
    if importlib.util.find_spec("mkdocs") is None:
        skip_or_fail("no mkdocs; make .venv/.site installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "packaging" / "site" / "build.py", folder]
    # A job of Spark that a test before has started says it for all its children.
    others = {n: v for n, v in os.environ.items() if n != "PYTHONSAFEPATH"}
    subprocess.run(command, check=True, timeout=120, env=others)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page."""
    return {path: Page(path) for path in site.rglob("*.html") if path.stem != "404"}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; yield the address of its front page."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html"
        finally:
            server.shutdown()
            thread.join()


def test_every_document_has_a_page(pages: dict[Path, Page]) -> None:
    """And README is the front."""
    names = {path.stem for path in pages}
    assert {path.stem for path in ROOT.glob("docs/**/*.md")} | {"index"} <= names


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the links to files and anchors that are not there."""
    for path, page in pages.items():
        for link in page.links + page.loads:
            name, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (path.parent / unquote(name)).resolve() if name else path
            if not target.exists():
                yield f"{path.name}: {link}"
            anchors = pages[target].anchors if target in pages else {unquote(anchor)}
            if anchor and unquote(anchor) not in anchors | {"__toc"}:
                yield f"{path.name}: {link}"


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, Page]) -> None:
    """On the site as it is, not only in its sources."""
    assert not list(broken(pages))


def test_a_page_loads_nothing_from_another_host(pages: dict[Path, Page]) -> None:
    """Fonts, scripts and search are the site's own."""
    foreign = [load for p in pages.values() for load in p.loads if "//" in load]
    assert foreign == []


@pytest.mark.browser
def test_a_page_fits_a_phone(pages: dict[Path, Page], browser: Browser) -> None:
    """Nothing has to be pushed aside to read it: wide tables and lines scroll alone."""
    phone = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    sheet = phone.new_page()
    try:
        wide = []
        for path in pages:
            sheet.goto(path.as_uri(), wait_until="domcontentloaded")
            if sheet.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                wide.append(path.name)
        assert wide == []
    finally:
        phone.close()


def test_the_references_name_every_path_and_message(site: Path) -> None:
    """They are made of what the gateway says of itself."""
    rest = (site / "rest-reference.html").read_text("utf-8")
    operators = (site / "operators-reference.html").read_text("utf-8")
    stream = (site / "stream-reference.html").read_text("utf-8")
    assert "GET /v1/quotes" in rest
    assert "GET /v1/pipeline" in operators
    assert 'id="update"' in stream
    assert "4408" in stream


@pytest.mark.browser
@pytest.mark.parametrize(
    ("words", "found"), [("ledger balanced", "guides/csv"), ("관심종목", "ko/board")]
)
def test_what_is_searched_for_is_found(
    site: Path, browser: Browser, words: str, found: str
) -> None:
    """In English and in Korean, from the site's own index."""
    sheet = browser.new_page()
    try:
        with serving(site) as address:
            sheet.goto(address)
            sheet.locator("[data-md-component=search-query]").fill(words)
            result = sheet.locator(f".md-search-result__link[href*='{found}']")
            result.first.wait_for(state="attached", timeout=60_000)
    finally:
        sheet.close()


@pytest.mark.browser
def test_a_reader_of_the_dark_has_dark_pages(site: Path, browser: Browser) -> None:
    """By what the system says, before anything is pressed."""
    dark = browser.new_context(color_scheme="dark")
    sheet = dark.new_page()
    try:
        sheet.goto((site / "index.html").as_uri())
        body = sheet.locator("body")
        assert body.get_attribute("data-md-color-scheme") == "slate"
        colour = body.evaluate("e => getComputedStyle(e).backgroundColor")
        assert max(map(int, re.findall(r"\d+", colour)[:3])) < 80
    finally:
        dark.close()
