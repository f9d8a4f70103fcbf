"""The command that lists the simulated market's issues."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.commands.entry import fail
from deploy.commands.setting_options import options_of
from ingest.sources.simulator import Simulator


@options_of(Simulator, "seed", "issues")
def issues(
    *,
    market: Simulator,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file. [default: print]")
    ] = None,
) -> None:
    """List the issues of the simulated market: names, markets, sectors, base prices.

    As CSV, for TICKTHROTTLE_ISSUES_FILE of a gateway beside a simulator of the same
    seed. Every name is made up.
    """
    from ingest.sources.market import encode_issues

    text = encode_issues(market.listing())
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"out {out}: {error.strerror or error}")
