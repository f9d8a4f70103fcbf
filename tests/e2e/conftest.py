"""A real browser for end-to-end tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import PATIENCE, skip_or_fail
from tests.e2e.board_page import NAMES, Board, running_board
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG

# The list takes the place of Playwright's own, of which it has what matters here. The
# pages of the address bar, which nobody sees, are as much work as a page of ours.
_DISABLED = (
    *("AimEnabled", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "MediaRouter"),
    *("NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding"),
    *("PreconnectToSearch", "ThirdPartyStoragePartitioning"),
    *("WebUIOmniboxAimPopup", "WebUIOmniboxPopup"),
)

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(_DISABLED)}",
]

# Five seconds by default, of a browser that may share two cores with everything else.
expect.set_options(timeout=10_000 * PATIENCE)


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
def visitor() -> dict[str, Any]:
    """What a page's visitor is like, in Playwright's words: a locale, a time zone."""
    return {}


@pytest.fixture
def page(browser: Browser, visitor: dict[str, Any]) -> Iterator[Page]:
    """A page that knows nothing of others, and fails on any error of the script."""
    page = browser.new_page(**visitor)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda message: (
            message.type == "error"
            # A lost connection, and an answer that says no, are told by the browser
            # itself, whoever handles them.
            and not message.text.startswith("WebSocket connection to ")
            and "has been blocked by CORS policy" not in message.text
            and "/v1/" not in message.location.get("url", "")
            and problems.append(message.text)
        ),
    )
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def board(page: Page, client: redis.Redis, tmp_path: Path) -> Iterator[Board]:
    """A board of three instruments, two of which have names."""
    instruments = tmp_path / "instruments.csv"
    instruments.write_text(NAMES, "utf-8")
    prices = {SAMSUNG: "199400", HYNIX: "900000.50", NAVER: "0.30"}
    with running_board(page, client, instruments, prices) as board:
        yield board
