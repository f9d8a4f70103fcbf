"""`tickthrottle load`: will it hold? Trades in, clients out, a report."""

from importlib import import_module

import typer
from pydantic import ValidationError

from cli.commands.entry import fail, failing_on
from cli.commands.load_choices import OPTIONS, LoadChoices
from cli.commands.setting_options import options_of
from ingest.process.redact import problems_of


@options_of(
    LoadChoices,
    *OPTIONS,
    tapes="--tape",
    rules="--fail-if",
    raised="--find-capacity",
    compares_polling="--compare-polling",
    gateways="--gateway",
)
def load(choices: LoadChoices) -> None:
    """Load a deployment with trades and checking clients, and report.

    Starts one on this machine unless `--gateway` names a running one. Ends with exit
    code 1 if a promise or a threshold was broken, 3 if the run could not be carried
    out.
    """
    # A wheel of its own, which imports this one: found by its name.
    command = import_module("loadtest.command")
    with failing_on(command.LoadFailed), failing_on(ValueError, code=2):
        try:
            is_passed = command.run_command(choices)
        except ValidationError as error:
            fail(problems_of(error), code=2)
    raise typer.Exit(0 if is_passed else 1)
