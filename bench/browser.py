"""What a window costs the page in a browser, and whether it scrolls smoothly.

A real Chromium shows the market board of a real gateway, with the names and numbers
of the simulated market's instruments. Every two seconds a window is published. Measured
is the processor time of all that the page's main thread does in the two seconds from
one window to the next (Chromium's own count of the renderer's tasks), and by the clock
the page's own measures: `window-update`, from reading the message to the end of the
frame that shows it, and `map-update`, the last part of it, from where the map is
repainted. The views are the table, without and with an instrument open beside it, the
map, and nine charts of windows; each has the same budget.

While it scrolls, the time between two frames is measured by the page's animation
frames, once more with a processor that is four times slower. The rest of the browser
and the gateway share the machine with the page; there is no graphics card.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from machine import (
    Row,
    load_table,
    options,
    percentile,
    print_machine,
    print_rows,
    running_chromium,
)
from pinned_gateway import LISTING, WINDOW_S, Bench, make_row, started
from playwright.sync_api import CDPSession, Page

from ingest.sources.market import SimulatedInstrument, step_down
from throttle.contract.snapshot import Row as TradedRow

MOST_MS = 50
MOST_MAP_MS = 16
LATE_MS = 33.4
"""Later than the second frame of a screen with 60 a second."""
SLOW = 4
CHARTS = 9
MEASURE, MAP_MEASURE = "window-update", "map-update"
ORDINARY = 1_000
SCROLL_SPEED, SCROLLED = 3_000, 60_000
"""Pixels a second, and in all: as with a finger that does not stop."""

OBSERVER = """
window.benchmark = {measures: {}, longTasks: [], frames: []};
new PerformanceObserver((list) => {
  for (const {entryType, name, duration} of list.getEntries()) {
    if (entryType === "longtask") benchmark.longTasks.push(duration);
    else (benchmark.measures[name] ??= []).push(duration);
  }
}).observe({entryTypes: ["measure", "longtask"]});
"""
TAKE = """() => {
  const taken = window.benchmark;
  window.benchmark = {measures: {}, longTasks: [], frames: []};
  return taken;
}"""
WATCH_FRAMES = """() => {
  let before = null;
  const watch = (now) => {
    if (before !== null) window.benchmark.frames.push(now - before);
    before = now;
    window.watching = requestAnimationFrame(watch);
  };
  window.watching = requestAnimationFrame(watch);
}"""

# What Chromium counts, seconds since the page began, and what it is called here.
ALL, TOOLS = "TaskDuration", "DevToolsCommandDuration"
PARTS = {
    "ScriptDuration": "script",
    "RecalcStyleDuration": "style",
    "LayoutDuration": "layout",
}
REST = "paint, messages, garbage"


def main() -> None:
    arguments = options(
        __doc__,
        windows=(30, "of each case"),
        slowdown=(1.0, "of the page's thread: a phone's is 4"),
    )
    with started() as bench, running_chromium() as chromium:
        # The gateway knows what the instruments are called.
        load_table(bench.server, len(LISTING))
        page = chromium.new_page(viewport={"width": 1_280, "height": 800})
        page.on("pageerror", lambda error: print(f"The page failed: {error}"))
        page.add_init_script(OBSERVER)
        board = Board(bench, page, arguments.slowdown)
        cases = []
        for name, prepare, count in (
            ("all instruments", None, len(LISTING)),
            (f"{ORDINARY:,} of them", None, ORDINARY),
            ("all, a chart open", board.open_chart, len(LISTING)),
            ("all, the map", lambda: board.show("map"), len(LISTING)),
            ("all, the map, a chart open", board.open_tile, len(LISTING)),
            (f"all, {CHARTS} charts", lambda: board.show("charts"), len(LISTING)),
        ):
            if prepare is not None:
                prepare()
            cases.append(board.measure(name, count, arguments.windows))
        board.show("table")
        board.scroll(is_market_open=False)
        scrolled = {}
        for slowed in (1, SLOW):
            board.slow_down(arguments.slowdown * slowed)
            words = f", {slowed} times slower" if slowed > 1 else ""
            scrolled[f"no windows{words}"] = board.scroll(is_market_open=False)
            scrolled[f"all instruments a window{words}"] = board.scroll(
                is_market_open=True
            )
        version = chromium.version
    print_machine(f"; Chromium {version}")
    report_windows(cases)
    report_frames(scrolled)


@dataclass
class Case:
    """What windows of one kind cost the main thread, milliseconds each."""

    name: str
    all_ms: list[float] = field(default_factory=list)
    parts_ms: dict[str, list[float]] = field(default_factory=dict)
    measures_ms: list[float] = field(default_factory=list)
    map_ms: list[float] = field(default_factory=list)
    long_tasks_ms: list[float] = field(default_factory=list)


class Board:
    """The page, and the windows it gets."""

    def __init__(self, bench: Bench, page: Page, slowdown: float) -> None:
        self._bench = bench
        self._page = page
        self._seq = 1
        self._tools: CDPSession = page.context.new_cdp_session(page)
        # By the clock a task would count while it waits for a core.
        self._tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.slow_down(slowdown)
        page.goto(f"http://127.0.0.1:{bench.port}/")
        page.locator("#rows tr").nth(10).wait_for(timeout=30_000)

    def slow_down(self, times: float) -> None:
        self._tools.send("Emulation.setCPUThrottlingRate", {"rate": times})

    def measure(self, name: str, count: int, windows: int) -> Case:
        """Publish windows with so many instruments; add up what each costs the page."""
        case = Case(name)
        before: dict[str, float] = {}
        # The first one compiles what is new to it.
        for number in range(windows + 1):
            self._publish(count)
            # Just before the next one: a window's cost is everything up to there.
            time.sleep(WINDOW_S * 0.95 - time.time() % WINDOW_S)
            after = self._metrics()
            if number:
                spent = {key: (after[key] - before[key]) * 1e3 for key in after}
                case.all_ms.append(spent[ALL] - spent[TOOLS])
                parts = {part: spent[key] for key, part in PARTS.items()}
                parts[REST] = case.all_ms[-1] - sum(parts.values())
                for part, spent_ms in parts.items():
                    case.parts_ms.setdefault(part, []).append(spent_ms)
            else:
                self._page.evaluate(TAKE)
                after = self._metrics()
            before = after
        taken: Any = self._page.evaluate(TAKE)
        case.measures_ms = taken["measures"].get(MEASURE, [])
        case.map_ms = taken["measures"].get(MAP_MEASURE, [])
        case.long_tasks_ms = taken["longTasks"]
        if len(case.measures_ms) < windows:
            measured = len(case.measures_ms)
            raise SystemExit(
                f"{name}: the page measured {measured} of {windows} windows"
            )
        return case

    def open_chart(self) -> None:
        self._page.locator("#rows tr").nth(3).click()
        self._page.locator("canvas").first.wait_for(timeout=10_000)

    def open_tile(self) -> None:
        self._page.locator("#map .surface").focus()
        self._page.keyboard.press("Enter")
        self._page.locator(".detail canvas").first.wait_for(timeout=10_000)

    def show(self, view: str) -> None:
        """Load the page with a view alone; the watch-list has the first instruments."""
        isins = [instrument.isin for instrument in LISTING[:CHARTS]]
        kept = json.dumps({"active": "bench", "lists": [["bench", isins]]})
        self._page.evaluate(
            "(kept) => localStorage.setItem('tickthrottle.watch-lists', kept)", kept
        )
        self._page.goto("about:blank")
        self._page.goto(f"http://127.0.0.1:{self._bench.port}/#/{view}")
        first = {
            "table": "#rows tr:nth-child(10)",
            "map": "#map canvas",
            "charts": f"#charts .cell:nth-child({CHARTS}) canvas",
        }
        self._page.locator(first[view]).first.wait_for(timeout=30_000)

    def scroll(self, *, is_market_open: bool) -> list[float]:
        self._page.evaluate("document.querySelector('.scroller').scrollTop = 0")
        self._page.evaluate(TAKE)
        self._page.evaluate(WATCH_FRAMES)
        ends_s = time.monotonic() + SCROLLED / SCROLL_SPEED
        box = self._page.locator(".scroller").bounding_box()
        if box is None:
            raise SystemExit("the table cannot be seen")
        gesture = {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + box["height"] / 2,
            "speed": SCROLL_SPEED,
            "gestureSourceType": "mouse",
        }
        while time.monotonic() < ends_s:
            if is_market_open:
                self._publish(len(LISTING))
            distance = -SCROLL_SPEED * WINDOW_S * 0.8
            self._tools.send(
                "Input.synthesizeScrollGesture", {**gesture, "yDistance": distance}
            )
        self._page.evaluate("() => cancelAnimationFrame(window.watching)")
        frames_ms: list[float] = self._page.evaluate(TAKE)["frames"]
        return frames_ms

    def _publish(self, count: int) -> None:
        self._seq += 1
        chosen = Random(self._seq).sample(LISTING, count)
        rows = [make_traded_row(instrument, self._seq) for instrument in chosen]
        self._bench.publish_rows(rows)

    def _metrics(self) -> dict[str, float]:
        answer: Any = self._tools.send("Performance.getMetrics")
        values = {metric["name"]: metric["value"] for metric in answer["metrics"]}
        return {key: values[key] for key in (ALL, TOOLS, *PARTS)}


def make_traded_row(instrument: SimulatedInstrument, seq: int) -> TradedRow:
    """Return a row at another price than the one before."""
    price = instrument.base_price if seq % 2 else step_down(instrument.base_price)
    volume = 1_204 * seq
    sums = {"cum_volume": volume, "cum_value": volume * price}
    return make_row(instrument.isin, seq, str(price), side="B", **sums)


def report_windows(cases: Sequence[Case]) -> None:
    rows = []
    for case in cases:
        measures: dict[str, tuple[list[float], int | None]] = {
            "everything in its 2 s": (case.all_ms, MOST_MS),
            **{f"- {part}": (spent, None) for part, spent in case.parts_ms.items()},
            f"`{MEASURE}`": (case.measures_ms, MOST_MS),
            f"`{MAP_MEASURE}`": (case.map_ms, MOST_MAP_MS),
            "tasks over 50 ms": (case.long_tasks_ms, None),
        }
        for name, (values, most) in measures.items():
            if values:
                row = {"window": case.name, "": name} | of_times(values)
                kept = "kept" if percentile(values, 0.99) <= (most or 0) else "not kept"
                rows.append(row | {"at most": f"{most}, {kept}" if most else ""})
    title = f"ms of the page's main thread for a window; but for `{MEASURE}` of a core"
    print_rows(title, rows)


def report_frames(cases: dict[str, list[float]]) -> None:
    rows = []
    for name, frames in cases.items():
        late = sum(frame > LATE_MS for frame in frames) / len(frames)
        row = {"": name, "frames": f"{len(frames):,}", **of_times(frames)}
        rows.append(row | {"longer than 33 ms": f"{late:.1%}"})
    title = f"ms between frames while scrolling at {SCROLL_SPEED:,} pixels a second"
    print_rows(title, rows)


def of_times(values: Sequence[float]) -> Row:
    shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {head: f"{percentile(values, s):.1f}" for head, s in shares.items()}


if __name__ == "__main__":
    main()
