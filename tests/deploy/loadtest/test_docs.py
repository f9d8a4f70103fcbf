"""`docs/load.md` and `bench/README.md` leave nothing out."""

import pytest
import typer

from deploy.cli import app
from deploy.loadtest.client_mix import KINDS
from deploy.loadtest.scenarios import SCENARIOS
from deploy.loadtest.thresholds import COUNTS, DISTRIBUTIONS, FIGURES
from tests.paths import ROOT

DOCUMENT = (ROOT / "docs" / "load.md").read_text("utf-8")
FIGURES_TOLD = (ROOT / "bench" / "README.md").read_text("utf-8")


def options() -> list[str]:
    """Return every option of the command."""
    command = typer.main.get_command(app).commands["load"]  # type: ignore[attr-defined]
    return [name for p in command.params for name in p.opts if name != "--help"]


@pytest.mark.parametrize("option", options())
def test_an_option_is_explained(option: str) -> None:
    """What can be asked for is in the document."""
    assert f"{option}`" in DOCUMENT or f"{option} " in DOCUMENT


@pytest.mark.parametrize("name", [*SCENARIOS, *KINDS, *DISTRIBUTIONS, *COUNTS])
def test_a_scenario_a_kind_and_a_metric_have_a_row(name: str) -> None:
    """What may be named is in a table."""
    rows = [row for row in DOCUMENT.splitlines() if row.startswith("| ")]
    assert any(f"`{name}`" in row.split("|")[1] for row in rows)


def test_every_figure_of_a_metric_is_named() -> None:
    """Whoever writes a threshold knows what there is."""
    for figure in FIGURES:
        assert f"`{figure}`" in DOCUMENT


@pytest.mark.parametrize(
    "script",
    [
        p.name
        for p in sorted((ROOT / "bench").glob("*.py"))
        if "__main__" in p.read_text("utf-8")
    ],
)
def test_a_benchmark_says_how_it_is_run(script: str) -> None:
    """Each script that can be run has its section or is named where it is used."""
    assert f"bench/{script}" in FIGURES_TOLD
