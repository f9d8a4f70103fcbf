"""Runs commands of the program in this process."""

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from cli.command_line import app


def run(*arguments: object, text: str | None = None) -> Result:
    """Run a command, with ``text`` as its standard input."""
    return CliRunner().invoke(app, [str(word) for word in arguments], input=text)


def printed(*arguments: object, code: int = 0, text: str | None = None) -> str:
    """Return what a command prints, or its sentence where it ends with 2 or more."""
    result = run(*arguments, text=text)
    assert result.exit_code == code, result.output
    return result.stderr if code > 1 else result.stdout


def objects(*arguments: object) -> list[Any]:
    """Return the JSON objects a command prints, numbers with a fraction as text."""
    result = run(*arguments, "--json")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    lines = result.stdout.splitlines()
    return [json.loads(line, parse_float=str) for line in lines]
