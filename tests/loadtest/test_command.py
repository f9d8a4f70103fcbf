"""`tickthrottle load` without a load: what it refuses.

With one: `test_deployment.py`.
"""

from typer.testing import CliRunner

from cli.command_line import app


def test_what_cannot_be_done_is_one_sentence() -> None:
    """Options that make no sense end with 2, a run that is not possible with 3."""
    gateway = "--gateway http://127.0.0.1:1"
    for options, code, words in (
        ("--scenario busy", 2, "scenario 'busy': must be one of standard"),
        ("--token-file x", 2, "token-file x: a deployment started here asks for"),
        (f"--token-file nothing {gateway}", 2, "token-file nothing: No such file"),
        (gateway, 3, "redis"),
        ("--seconds 1", 2, "seconds 1"),
    ):
        done = CliRunner().invoke(app, ["load", *options.split()])
        assert done.exit_code == code, done.output
        assert words in done.output
        assert "Traceback" not in done.output
