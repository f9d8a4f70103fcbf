"""A real browser for end-to-end tests."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, sync_playwright

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


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a headless Chromium that fails on any error of the script."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        skip_or_fail("no chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                message.type == "error"
                # A lost connection is told by the browser itself, whoever handles it.
                and not message.text.startswith("WebSocket connection to ")
                and problems.append(message.text)
            ),
        )
        yield page
        browser.close()
    assert problems == []
