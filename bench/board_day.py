"""Whether the page's memory stays flat over a trading day, in some minutes.

A real Chromium shows the table of a real gateway with a chart beside it. The windows of
ten hours are published one after the other, each as soon as the page has drawn those
before; the page's clock goes two seconds on with each. After every tenth of them the
browser collects garbage, and the script reads what is left: the script's heap, nodes of
the document, listeners. What grows from the first fifth of the day to its end is lost.
"""

import time
from random import Random

from browser import make_traded_row
from machine import load_table, options, print_rows, running_chromium
from pinned_gateway import LISTING, WINDOW_MS, started
from playwright.sync_api import Page

from loadtest.system.machine import describe_machine

CHANGED = 300
"""Instruments that a window has."""
AT_ONCE = 4
STEPS = 10
MOST_GROWTH_PERCENT = 2

# Each window takes the clock on; every other timer of the page stays the browser's.
CLOCK = """
window.windowsDrawn = 0;
const now = Date.now.bind(Date);
Date.now = () => now() + 2_000 * window.windowsDrawn;
new PerformanceObserver((list) => {
  window.windowsDrawn += list.getEntriesByName("window-update").length;
}).observe({entryTypes: ["measure"]});
"""
DRAWN = "(count) => window.windowsDrawn >= count"


def main() -> None:
    """Publish the day, and say what the page holds after each tenth of it."""
    arguments = options(__doc__, windows=(18_000, "of the day"))
    with started() as bench, running_chromium() as chromium:
        load_table(bench.server, len(LISTING))
        page = chromium.new_page(viewport={"width": 1_440, "height": 900})
        page.add_init_script(CLOCK)
        page.goto(f"http://127.0.0.1:{bench.port}/")
        page.locator("#rows tr").nth(3).click()
        page.locator(".detail canvas").first.wait_for(timeout=60_000)
        window = round(time.time() * 1_000 / WINDOW_MS) * WINDOW_MS
        rows, drawn = [], 0
        for number in range(1, arguments.windows + 1):
            chosen = [*Random(number).sample(LISTING, CHANGED), *LISTING[:10]]
            traded = {one.isin: make_traded_row(one, number + 1) for one in chosen}
            window += WINDOW_MS
            bench.publish_window(list(traded.values()), window, time.time())
            if number % AT_ONCE == 0:
                page.wait_for_function(DRAWN, arg=drawn + 1, timeout=60_000)
                drawn = page.evaluate("window.windowsDrawn")
                bench.forget()
            if number % (arguments.windows // STEPS) == 0:
                rows.append({"windows": f"{number:,}"} | held(page))
                print(*rows[-1].values(), flush=True)
        version = chromium.version
    print_rows("what the page holds after garbage was collected", rows)
    first, last = (float(rows[at]["heap, MiB"]) for at in (STEPS // 5 - 1, -1))
    growth = 100 * (last / first - 1)
    kept = "kept" if growth <= MOST_GROWTH_PERCENT else "not kept"
    print(f"\nIts heap grew by {growth:.1f} % (at most {MOST_GROWTH_PERCENT}: {kept}).")
    print(f"Machine: {describe_machine()}; Chromium {version}")


def held(page: Page) -> dict[str, str]:
    """Return what a page holds once its garbage is collected."""
    tools = page.context.new_cdp_session(page)
    tools.send("HeapProfiler.collectGarbage")
    heap = tools.send("Runtime.getHeapUsage")["usedSize"] / 2**20
    counts = tools.send("Memory.getDOMCounters")
    tools.detach()
    memory = {"heap, MiB": f"{heap:.2f}"}
    return memory | {
        name: f"{counts[name]:,}" for name in ("nodes", "jsEventListeners")
    }


if __name__ == "__main__":
    main()
