"""A real browser for end-to-end tests."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.conftest import skip_or_fail

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium for the tests of a module."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        skip_or_fail("no chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that knows nothing of others, and fails on any error of the script."""
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            message.type == "error"
            # A lost connection, and an answer that says no, are told by the browser
            # itself, whoever handles them.
            and not message.text.startswith("WebSocket connection to ")
            and "/v1/" not in message.location.get("url", "")
            and problems.append(message.text)
        ),
    )
    yield page
    page.close()
    assert problems == []
