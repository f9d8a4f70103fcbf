"""The command that says in a few lines whether all is well."""

from typing import Annotated

import typer

from cli.commands.entry import fail, failing_on
from cli.commands.setting_options import AsJson
from cli.commands.tables import print_json
from cli.local.pipelines import NotOne
from cli.terminal.gateway_address import (
    NoAnswer,
    TokenFile,
    ask,
    operators_of,
    read_token,
)
from cli.terminal.status_lines import status_lines
from tickthrottle_client.harmless_text import harmless


def status(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            help="A gateway's operators' port, such as http://127.0.0.1:8001. Without "
            "it, that of the pipeline that runs here."
        ),
    ] = None,
    token_file: TokenFile = None,
    json: AsJson = False,
) -> None:
    """Say whether all is well, and what to do if not.

    The gateway judges, as for the operators' page. Ends with 1 if there is a fault.
    """
    with failing_on(NoAnswer), failing_on(NotOne, ValueError, code=2):
        address = operators_of(url) + "v1/pipeline"
        body, answer = ask(address, read_token(token_file), of_operators=True)
        try:
            lines = status_lines(answer)
        except (ArithmeticError, AttributeError, KeyError, TypeError):
            fail(f"{address} answers, but no gateway of this version does there")
    if json:
        print_json(body)
    else:
        for line in lines:
            typer.echo(harmless(line))
    raise typer.Exit(1 if answer["diagnosis"]["level"] == "bad" else 0)
