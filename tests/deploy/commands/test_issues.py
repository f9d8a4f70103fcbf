"""What the simulated market's issues are called, for whoever shows them."""

from pathlib import Path

from typer.testing import CliRunner

from deploy.cli import app
from deploy.local.runner import issues_file_of
from deploy.local.settings import RunSettings
from ingest.sources.market import encode_issues
from ingest.sources.simulator import Simulator

runner = CliRunner()
OWN = encode_issues(Simulator().listing())


def test_the_command_prints_what_the_simulator_trades() -> None:
    """Seed and number mean what they mean to `simulate`."""
    arguments = ["issues", "simulated", "--seed", "5", "--issues", "7"]
    printed = runner.invoke(app, arguments).stdout
    assert printed == encode_issues(Simulator(seed=5, issues=7).listing())
    assert runner.invoke(app, ["issues", "simulated"]).stdout == OWN
    first = runner.invoke(app, ["issues", "simulated", "--issues", "3"]).stdout
    assert OWN.startswith(first)


def test_the_command_writes_a_file_or_says_why_not(tmp_path: Path) -> None:
    """A folder that is not there is named in one sentence."""
    path = tmp_path / "issues.csv"
    assert runner.invoke(app, ["issues", "simulated", "--out", str(path)]).stdout == ""
    assert path.read_text("utf-8") == OWN
    missing = tmp_path / "missing" / "issues.csv"
    result = runner.invoke(app, ["issues", "simulated", "--out", str(missing)])
    assert result.exit_code == 3
    assert result.stderr == f"tickthrottle: out {missing}: No such file or directory\n"


def test_a_run_of_the_simulator_names_its_issues(tmp_path: Path) -> None:
    """The file is in the run's folder."""
    path = issues_file_of(RunSettings(), tmp_path)
    assert path == tmp_path / "issues.csv"
    assert path.read_text("utf-8") == OWN


def test_a_run_of_a_tape_has_the_names_it_was_given(tmp_path: Path) -> None:
    """Without a file it has none; a file that is given is always taken."""
    tape, named = tmp_path / "tape.csv", tmp_path / "names.csv"
    tape.touch()
    named.touch()
    assert issues_file_of(RunSettings(tape=tape), tmp_path) is None
    for chosen in (
        RunSettings(issues_file=named),
        RunSettings(tape=tape, issues_file=named),
    ):
        assert issues_file_of(chosen, tmp_path) == named
    assert not (tmp_path / "issues.csv").exists()
