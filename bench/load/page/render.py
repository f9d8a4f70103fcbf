"""One HTML page from a result: everything is in it, nothing is loaded."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

import orjson

from bench.load.page import (
    capacity,
    ledger,
    method,
    plot,
    plots,
    processes,
    tables,
    verdict,
)
from bench.load.page.markup import Markup, element, join
from bench.load.results import Result

HOW_TO_READ = (
    "Times count from when measuring began; what is shaded was before or after. With "
    "the pointer over any plot, all of them tell that moment."
)
EXPORT = "export { uPlot as default };"
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(result: Result) -> str:
    """Return the page. It reads without its script; only plots need it."""
    outcome = result.outcome
    drawn = plots.plots(outcome)
    script = _script()
    body = join(
        [
            verdict.verdict(result),
            verdict.faults(outcome),
            capacity.capacity(result.capacity),
            tables.comparison(result),
            _scope(result),
            verdict.key_figures(outcome),
            element("p", HOW_TO_READ, class_="soft hint") if drawn else "",
            element(
                "div",
                *(plot.draw(one, outcome) for one in drawn),
                class_="charts",
            ),
            tables.kinds(outcome),
            element(
                "div",
                ledger.ledger(outcome),
                tables.audit(outcome.audit),
                class_="pair",
            ),
            processes.processes(outcome),
            method.method(result),
        ]
    )
    slots = {
        "policy": _policy(script),
        "title": join([result.title]),
        "style": _style(),
        "moment": join([method.moment(outcome.from_ms)]),
        "body": body,
        "licence": _licence(),
        "data": _data(result, drawn),
        "script": script,
    }
    return _SLOT.sub(lambda slot: slots[slot[1]], _read("bench.load.page", "page.html"))


def _scope(result: Result) -> Markup:
    """Say of what the rest of the page speaks, where that is not the one run."""
    if result.capacity is not None:
        text = "Everything below is of the whole search, the loads that broke included."
    elif result.comparison:
        text = "Everything below is of all ways of serving together."
    else:
        return Markup("")
    return element("p", text, class_="soft")


def _data(result: Result, drawn: list[plot.Plot]) -> str:
    """Return what the script draws, as JSON that cannot end its element."""
    shown = {
        "plots": [plot.data(one, result.outcome) for one in drawn],
        "capacity": result.capacity
        and {
            "raised": result.capacity.raised,
            "steps": [
                [step.load, step.lag_p99_ms, step.is_good]
                for step in sorted(result.capacity.steps, key=lambda one: one.load)
            ],
        },
    }
    return orjson.dumps(shown).decode().replace("<", "\\u003c")


@cache
def _script() -> str:
    """Return uPlot and our own script as one module."""
    library = _read("gateway", "static/vendor/uplot.mjs")
    return library.replace(EXPORT, "") + _read("bench.load.page", "page.js")


@cache
def _style() -> str:
    return "\n".join(
        [
            _read("gateway", "static/base.css"),
            _read("gateway", "static/vendor/uplot.css"),
            _read("bench.load.page", "page.css"),
        ]
    )


@cache
def _licence() -> Markup:
    return join([_read("gateway", "static/vendor/licences/uplot.txt").strip()])


def _policy(script: str) -> str:
    """Return a policy by which the page can load nothing and run only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


@cache
def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")
