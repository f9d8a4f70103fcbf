"""The page, in a real Chromium."""

from pathlib import Path

import pytest
import redis
from playwright.sync_api import Page

from tests.conftest import PATIENCE
from tests.gateway.publisher import Publisher
from tests.gateway.samples import HYNIX, SAMSUNG, make_row
from tests.gateway.servers import running_gateway

pytestmark = [pytest.mark.browser, pytest.mark.redis]


def test_the_board_shows_every_instrument_with_its_exact_price(
    redis_url: str, client: redis.Redis, page: Page, tmp_path: Path
) -> None:
    """Rows appear with the snapshot, change with an update, keep their digits."""
    publisher = Publisher(client)
    publisher.publish(make_row(SAMSUNG, "199400"), make_row(HYNIX, "0.30"))
    with running_gateway(redis_url) as gateway:
        page.goto(f"http://127.0.0.1:{gateway.port}/")
        samsung = page.locator("#rows tr", has_text=SAMSUNG)
        hynix = page.locator("#rows tr", has_text=HYNIX)
        samsung.wait_for(timeout=10_000 * PATIENCE)
        assert "0.30" in hynix.inner_text()
        publisher.publish(make_row(SAMSUNG, "199500", seq=2, trades=37))
        page.locator("#rows tr", has_text="199500").or_(
            page.locator("#rows tr", has_text="199,500")
        ).wait_for(timeout=10_000 * PATIENCE)
        assert "37" in samsung.inner_text()
        assert page.locator("#instruments").text_content() == "2"
        page.screenshot(path=str(tmp_path / "board.png"))
        page.fill("#search", "000660")
        samsung.wait_for(state="hidden", timeout=10_000 * PATIENCE)
        assert hynix.is_visible()
