"""The command that lists the simulated market's issues."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.entry import fail
from deploy.settings import RunSettings


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(issues)


def issues(
    seed: Annotated[int, typer.Option(help="As for `simulate`.")] = 1,
    count: Annotated[
        int, typer.Option("--issues", help="How many, as for `simulate`.")
    ] = 2_879,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file. [default: print]")
    ] = None,
) -> None:
    """List the issues of the simulated market: names, markets, sectors, base prices.

    As CSV, for TICKTHROTTLE_ISSUES_FILE of a gateway beside a simulator of the same
    seed. Every name is made up.
    """
    from ingest.issues_file import encode_issues
    from ingest.simulator import Simulator

    try:
        text = encode_issues(Simulator(seed=seed, issues=count).listing())
    except ValueError as error:
        fail(str(error), code=2)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"out {out}: {error.strerror or error}")


def issues_file_of(settings: RunSettings, folder: Path) -> Path | None:
    """Return the file that names a run's issues, None if they have no names.

    The simulated market's is written into ``folder``.
    """
    if settings.issues_file is not None or settings.tape is not None:
        return settings.issues_file
    from ingest.issues_file import encode_issues
    from ingest.simulator import Simulator

    path = folder / "issues.csv"
    path.write_text(encode_issues(Simulator().listing()), encoding="utf-8")
    return path
