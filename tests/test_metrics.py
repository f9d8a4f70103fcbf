"""Metrics, alerts, dashboard and documents agree: nothing missing, nothing made up."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import yaml

from gateway.stream.counters import Counters
from tests.conftest import skip_or_fail
from tests.documents import OPERATIONS
from tests.metrics import every_metric, scrapes
from tests.paths import ROOT
from tests.tidy import check

PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text("utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads(
    (ROOT / "deploy" / "grafana" / "dashboard.json").read_text("utf-8")
)
METRICS = every_metric()
SERIES = {series for metric in METRICS.values() for series in metric.series}
COUNTERS = {f"tickthrottle_gateway_{field.name}_total" for field in fields(Counters)}
ALL_COUNTERS = "tickthrottle_gateway_<counter>_total"
UNITS = {"s", "bytes", "short", "percentunit", "ops", "cps", "reqps", "none", "Bps"}


def documented() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Return the table of metrics: type, labels and meaning by name."""
    section = OPERATIONS.split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = re.findall(
        r"^\| `(tickthrottle_\S+)` \| (\w+) \|([^|]*)\| ([^|]+) \|$", section, re.M
    )
    return {
        name: (kind, tuple(sorted(re.findall(r"`(\w+)`", labels))), meaning)
        for name, kind, labels, meaning in rows
    }


def names_in(expression: str) -> set[str]:
    """Return the series a query asks for."""
    return set(re.findall(r"tickthrottle_\w+", expression))


def panels() -> list[dict[str, Any]]:
    """Return every panel of the dashboard that shows something."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def test_a_metric_is_documented_as_it_is() -> None:
    """Whoever writes a query finds type, labels and meaning."""
    rows = documented()
    check(
        f"{name}: {metric.kind} {metric.labels}"
        for name, metric in METRICS.items()
        if name not in COUNTERS
        and rows.get(name, ())[:2] != (metric.kind, metric.labels)
    )


def test_what_is_documented_exists() -> None:
    """No metric is left in the table that nobody sets any more."""
    check(documented().keys() - METRICS.keys() - {ALL_COUNTERS})


def test_the_gateways_counters_are_metrics_without_labels() -> None:
    """One row stands for all of them; the counters have a table of their own."""
    assert documented()[ALL_COUNTERS][0] == "counter"
    for name in COUNTERS:
        assert METRICS[name].kind == "counter"
        assert METRICS[name].labels == ()


def test_an_alert_asks_for_what_there_is_and_says_what_to_do() -> None:
    """Who is woken at night finds the line that helps."""
    section = OPERATIONS.split("\n## Alerts\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", section, re.M)
    assert ALERTS
    check(
        f"{alert['alert']}: {sentence}"
        for alert in ALERTS
        for sentence in faults_of_alert(alert, rows)
    )


def faults_of_alert(alert: dict[str, Any], rows: list[str]) -> Iterator[str]:
    """Yield what is wrong with an alert, given those that the table names."""
    notes = alert["annotations"]
    for name in names_in(alert["expr"]) - SERIES:
        yield f"asks for {name}, which there is not"
    if alert["labels"]["severity"] not in ("page", "ticket"):
        yield "its severity is neither page nor ticket"
    if notes.keys() != {"summary", "description", "runbook_url"}:
        yield "it needs summary, description and runbook_url"
    if not notes.get("runbook_url", "").endswith("#alerts"):
        yield "its runbook_url is not the table of alerts"
    if rows.count(alert["alert"]) != 1:
        yield "it needs one row of the table"


def test_every_alert_in_the_table_exists() -> None:
    """``tests/deploy/test_alerts.py`` tries each of them."""
    section = OPERATIONS.split("\n## Alerts\n")[1].split("\n## ")[0]
    names = {rule["alert"] for rule in ALERTS}
    assert set(re.findall(r"^\| `(Tickthrottle\w+)` \|", section, re.M)) == names


def test_prometheus_takes_rules_configuration_and_names() -> None:
    """By its own tool: units, suffixes and help are as its conventions ask for."""
    _promtool("check", "rules", "alerts.yml")
    _promtool("check", "config", "prometheus.yml")
    for scrape in scrapes():
        assert _promtool("check", "metrics", text=scrape) == ""


def _promtool(*arguments: str, text: bytes = b"") -> str:
    if shutil.which("promtool") is None:
        skip_or_fail("promtool is not installed (on Debian: prometheus)")
    done = subprocess.run(
        ["promtool", *arguments],
        cwd=PROMETHEUS,
        input=text,
        capture_output=True,
        check=False,
        timeout=60,
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


def test_a_panel_shows_what_there_is_with_a_title_and_a_unit() -> None:
    """A number on a dashboard has a meaning."""
    assert panels()
    check(
        f"{panel['title'] or panel['id']}: {sentence}"
        for panel in panels()
        for sentence in faults_of_panel(panel)
    )


def faults_of_panel(panel: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a panel."""
    if not (panel["title"] and panel["description"]):
        yield "it needs a title and a description"
    if panel["fieldConfig"]["defaults"]["unit"] not in UNITS:
        yield "it has no unit, or an unknown one"
    if not panel["targets"]:
        yield "it shows nothing"
    for target in panel["targets"]:
        yield from faults_of_query(target["datasource"], target["expr"])


def faults_of_query(datasource: dict[str, str], expression: str) -> Iterator[str]:
    """Yield what is wrong with what a panel or an annotation asks."""
    names = names_in(expression)
    if not names or not names <= SERIES:
        yield f"asks for what there is not: {expression}"
    if datasource["uid"] != "${datasource}":
        yield "its data source is no variable"


def test_what_is_wrong_is_marked_on_every_panel() -> None:
    """By its code, while it lasts."""
    [marks] = DASHBOARD["annotations"]["list"]
    check(faults_of_query(marks["datasource"], marks["target"]["expr"]))
    assert marks["enable"]
    assert marks["titleFormat"] == "{{code}}"


def test_the_dashboard_can_be_imported() -> None:
    """It names its data source by a variable, and no two panels have one number."""
    assert DASHBOARD["id"] is None
    assert DASHBOARD["templating"]["list"][0]["name"] == "datasource"
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in panels():
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
