"""`docs/scaling.md` and `bench/README.md` leave nothing out."""

import typer

from cli.command_line import app
from loadtest.client_mix import KINDS
from loadtest.scenarios import SCENARIOS
from loadtest.thresholds import COUNTS, DISTRIBUTIONS, FIGURES
from tests.paths import ROOT
from tests.tidy import check

DOCUMENT = (ROOT / "docs" / "scaling.md").read_text("utf-8")
FIGURES_TOLD = (ROOT / "bench" / "README.md").read_text("utf-8")


def options() -> list[str]:
    command = typer.main.get_command(app).commands["load"]  # type: ignore[attr-defined]
    return [name for p in command.params for name in p.opts if name != "--help"]


def test_an_option_is_explained() -> None:
    """What can be asked for is in the document."""
    check(o for o in options() if f"{o}`" not in DOCUMENT and f"{o} " not in DOCUMENT)


def test_a_scenario_a_kind_and_a_metric_have_a_row() -> None:
    """What may be named is in a table."""
    rows = [row for row in DOCUMENT.splitlines() if row.startswith("| ")]
    cells = "".join(row.split("|")[1] for row in rows)
    names = (*SCENARIOS, *KINDS, *DISTRIBUTIONS, *COUNTS)
    check(name for name in names if f"`{name}`" not in cells)


def test_every_figure_of_a_metric_is_named() -> None:
    """Whoever writes a threshold knows what there is."""
    for figure in FIGURES:
        assert f"`{figure}`" in DOCUMENT


def test_a_benchmark_says_how_it_is_run() -> None:
    """Each script that can be run has its section or is named where it is used."""
    scripts = [
        path.name
        for path in sorted((ROOT / "bench").glob("*.py"))
        if "__main__" in path.read_text("utf-8")
    ]
    check(script for script in scripts if f"bench/{script}" not in FIGURES_TOLD)
