"""`tickthrottle load` without a load: what it refuses, and pages made anew.

With one: `test_deployment.py`.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.load.report import write
from deploy.cli import app
from tests.load.samples import make_result


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--scenario", "busy"], 2, "scenario 'busy': must be one of standard"),
        (["--redis-url", "redis://127.0.0.1:1"], 2, "name its gateways with"),
        (["--token-file", "x"], 2, "token-file x: a deployment started here asks for"),
        (
            ["--token-file", "nothing", "--gateway", "http://127.0.0.1:1"],
            2,
            "token-file nothing: No such file",
        ),
        (["--gateway", "http://127.0.0.1:1"], 3, "redis"),
        (["--render", "nothing.json"], 3, "nothing.json: No such file"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    options: list[str], code: int, words: str
) -> None:
    """Options that make no sense end with 2, a run that is not possible with 3."""
    done = CliRunner().invoke(app, ["load", *options])
    assert done.exit_code == code, done.output
    assert words in done.output
    assert "Traceback" not in done.output


def test_a_page_is_made_anew(tmp_path: Path) -> None:
    """From the JSON of a report, beside it."""
    write(make_result(20, 10), tmp_path / "old.json", None)
    done = CliRunner().invoke(app, ["load", "--render", str(tmp_path / "old.json")])
    assert done.exit_code == 0, done.output
    assert "<html" in (tmp_path / "old.html").read_text("utf-8")
