"""The pictures of the documents, taken in a real Chromium of a real pipeline.

Starts `tickthrottle run` on free ports, waits until there is something to be seen, and
takes each view of ``VIEWS`` in both colours and three widths, then a recording of the
firehose page as an animated WebP, all into `docs/`. ``--only`` takes some of them.

Names of instruments are Korean. Without a font for them there are no pictures.
"""

import base64
import io
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from machine import (
    options,
    running_chromium,
    running_everything,
    wait_ready,
)
from PIL import Image
from playwright.sync_api import Browser, Page

DOCS = Path(__file__).resolve().parents[1] / "docs"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = ((390, 844), (1_024, 768), (1_440, 900))
READY_S = 180
SETTLED_S = 20.0
"""So long pages are looked at before their pictures: windows come every 2 s."""

WATCHED = 6
"""Instruments whose charts are shown together."""

RECORDING = "recording"
RECORDING_SIZE, RECORDED_S, FRAMES_PER_S = (960, 600), 6.0, 10
STILL_QUALITY, MOVING_QUALITY = 82, 45


def _open_instrument(page: Page) -> None:
    page.locator("#rows tr").first.locator(".price").click()
    page.locator("#detail-title").wait_for()


def _show_charts(page: Page) -> None:
    for place in range(WATCHED):
        page.locator("#rows tr .star button").nth(place).click()
    page.evaluate("location.hash = '#/charts'")
    page.locator("#charts .cell").first.wait_for()


@dataclass(frozen=True, slots=True)
class View:
    """A page to be taken: its path at one of the ports, and what is done first.

    It is there once ``awaited`` can be seen; ``locale`` is the browser's language.
    """

    name: str
    path: str
    awaited: str
    is_operators: bool = False
    locale: str = "en-GB"
    prepare: Callable[[Page], None] = lambda page: None


VIEWS = (
    View("board", "/", "#rows tr:nth-child(8)"),
    View("instrument", "/", "#rows tr:nth-child(8)", prepare=_open_instrument),
    View("map", "/#/map", "#map canvas"),
    View("charts", "/", "#rows tr:nth-child(8)", prepare=_show_charts),
    View("korean", "/", "#rows tr:nth-child(8)", locale="ko-KR"),
    View("firehose", "/firehose", ".calm .lines tbody tr", is_operators=True),
    View("operations", "/", "#verdict", is_operators=True),
)
"""A new view of the pages is one more line here; its pictures are
``docs/<name>-<width>-<theme>.webp``.
"""


def main() -> None:
    names = [*(view.name for view in VIEWS), RECORDING]
    wanted = options(__doc__, only=(names, "which of them", names)).only
    fonts = ["fc-list", ":lang=ko"]
    if not subprocess.run(fonts, check=True, capture_output=True).stdout.strip():
        raise SystemExit("no font here writes Korean (on Debian: fonts-nanum)")
    with (
        running_everything("--no-archive") as (run, *ports),
        running_chromium() as browser,
    ):
        public, operators = (f"http://127.0.0.1:{port}" for port in ports)
        wait_ready(ports[1], run, READY_S)
        for view in VIEWS:
            if view.name in wanted:
                take(browser, view, operators if view.is_operators else public)
        if RECORDING in wanted:
            record(browser, operators, DOCS / "firehose.webp")


@contextmanager
def opened(
    browser: Browser,
    url: str,
    theme: Literal["light", "dark"],
    size: tuple[int, int],
    locale: str = "en-GB",
) -> Iterator[Page]:
    """Open a page of its own, as somebody in Korea sees it."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        timezone_id="Asia/Seoul",
        locale=locale,
    )
    page = context.new_page()
    page.on("pageerror", lambda error: print(f"{url} failed: {error}"))
    page.goto(url)
    yield page
    context.close()


def take(browser: Browser, view: View, address: str) -> None:
    """Take a view in both colours and all widths; say how large they are."""
    for theme in THEMES:
        # All widths at once; of the firehose there may be four viewers.
        with ExitStack() as stack:
            pages = {
                f"{view.name}-{size[0]}-{theme}.webp": stack.enter_context(
                    opened(browser, address + view.path, theme, size, view.locale)
                )
                for size in SIZES
            }
            for page in pages.values():
                page.locator(view.awaited).first.wait_for(timeout=60_000)
                view.prepare(page)
            page.wait_for_timeout(SETTLED_S * 1_000)
            shots = {name: page.screenshot() for name, page in pages.items()}
        for name, shot in shots.items():
            _image(shot).save(DOCS / name, quality=STILL_QUALITY, method=6)
            print(f"{name}: {(DOCS / name).stat().st_size:,} bytes", flush=True)


def record(browser: Browser, operators: str, path: Path) -> None:
    """Record the firehose page as an animated WebP that plays for ever.

    The browser sends a frame whenever it has drawn one; of those each tenth of a second
    gets the newest.
    """
    with opened(browser, f"{operators}/firehose", "light", RECORDING_SIZE) as page:
        page.locator(".calm .lines tbody tr").first.wait_for(timeout=60_000)
        page.wait_for_timeout(SETTLED_S * 1_000)
        first, *others = _cast(page)
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=round(1_000 / FRAMES_PER_S),
        loop=0,
        quality=MOVING_QUALITY,
        method=4,
        minimize_size=True,
    )
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(others) + 1} frames")


def _cast(page: Page) -> list[Image.Image]:
    """Return a frame for each tenth of a second."""
    tools = page.context.new_cdp_session(page)
    newest: list[bytes] = []

    def keep(event: dict[str, object]) -> None:
        newest[:] = [base64.b64decode(str(event["data"]))]
        tools.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    tools.on("Page.screencastFrame", keep)
    tools.send("Page.startScreencast", {"format": "jpeg", "quality": 92})
    shots: list[bytes] = []
    began_s = time.monotonic()
    while len(shots) < RECORDED_S * FRAMES_PER_S:
        due_s = began_s + (len(shots) + 1) / FRAMES_PER_S
        page.wait_for_timeout(max(1.0, 1_000 * (due_s - time.monotonic())))
        if newest:
            shots.append(newest[0])
        else:
            began_s = time.monotonic()
    tools.send("Page.stopScreencast")
    return [_image(shot) for shot in shots]


def _image(shot: bytes) -> Image.Image:
    return Image.open(io.BytesIO(shot)).convert("RGB")


if __name__ == "__main__":
    main()
