"""One HTML page from a result: everything is in it, nothing is loaded."""

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from rich.console import Console

from deploy.loadtest.judge.balance import balance, per_item, per_row
from deploy.loadtest.report.terminal import summary
from deploy.loadtest.report.verdict import LOADS, judge
from deploy.loadtest.results import Outcome, Result, encode
from deploy.loadtest.thresholds import measure, parse

EXPORT = "export { uPlot as default };"
_SCRIPTS = ("words.js", "markup.js", "series.js", "plots.js", "page.js")
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(result: Result) -> str:
    """Return the page; without its script it has the figures of the terminal."""
    script = _script()
    slots = {
        "policy": _policy(script),
        "title": escape(result.title),
        "style": _style(),
        "words": escape(_words(result)),
        "licence": escape(_read("gateway", "static/vendor/licences/uplot.txt").strip()),
        "data": _data(result),
        "script": script,
    }
    return _SLOT.sub(lambda slot: slots[slot[1]], _own("page.html"))


def _data(result: Result) -> str:
    """Return the report and what is said of it, as JSON that cannot end its element."""
    outcome = result.outcome
    shown = {
        "result": result,
        "verdict": judge(result),
        "limits": _limits(outcome),
        "faultCount": measure("faults", outcome),
        "balance": balance(outcome.books),
        "tradesPerRow": per_row(outcome),
        "tradesPerItem": per_item(outcome),
        "raised": result.capacity and LOADS[result.capacity.raised].capitalize(),
    }
    return encode(shown).decode().replace("<", "\\u003c")


def _limits(outcome: Outcome) -> list[dict[str, Any]]:
    """Return each threshold by its family of metrics; plots show those of times."""
    rules = [parse(check.rule) for check in outcome.checks]
    return [
        {"family": r.metric.rpartition(".")[0], "value": r.limit, "rule": r.text}
        for r in rules
    ]


def _words(result: Result) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(summary(result))
    return captured.get()


@cache
def _script() -> str:
    """Return uPlot and our own scripts as one module, its names apart from ours."""
    library = _read("gateway", "static/vendor/uplot.mjs").replace(EXPORT, "")
    ours = "".join(map(_own, _SCRIPTS))
    return f"const uPlot = (() => {{\n{library}\nreturn uPlot;\n}})();\n{ours}"


@cache
def _style() -> str:
    shared = (
        _read("gateway", name)
        for name in ("static/base.css", "static/vendor/uplot.css")
    )
    return "\n".join([*shared, _own("page.css")])


def _policy(script: str) -> str:
    """Return a policy by which the page can load nothing and run only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _own(name: str) -> str:
    return _read("deploy.loadtest.report", f"page/{name}")


@cache
def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")
