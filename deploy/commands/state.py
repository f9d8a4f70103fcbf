"""The command that asks Spark what the state of the analytics job holds."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.commands.arguments import check_number, format_moment
from deploy.commands.entry import fail
from deploy.commands.setting_options import AsJson, options_of
from deploy.commands.tables import print_json, print_table
from throttle.settings import AnalyticsSettings


@options_of(AnalyticsSettings, "state_dir", "analytics_checkpoint")
def state(
    *,
    product: Annotated[str, typer.Option(help="Whose state: bars or movers.")] = "bars",
    isin: Annotated[
        str | None, typer.Option(help="Show what it holds of this issue only.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="As it was after this batch of Spark's; by default the last."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(help="Show at most this many, the newest.")
    ] = 20,
    json: AsJson = False,
    settings: AnalyticsSettings,
) -> None:
    """Show what Spark's state store holds of bars or movers.

    Starts a Spark of its own, which takes some seconds, and reads the checkpoint; the
    job may run meanwhile. See --state-dir, or --analytics-checkpoint.
    """
    from throttle.analytics.ask_state import NoState, ask_state

    check_number("limit", limit)
    if product not in ("bars", "movers"):
        fail(f"product {product!r}: must be bars or movers", code=2)
    try:
        bars = ask_state(settings, product, batch, isin)
    except NoState as error:
        fail(str(error))
    shown = bars[-limit:]
    if json:
        for bar in shown:
            print_json(bar.body())
        return
    print_table(
        ("start", "isin", "open#", "high#", "low#", "close#", "volume#", "trades#"),
        (
            (
                format_moment(bar.start_ms * 1000),
                bar.isin,
                bar.open.normalize(),
                bar.high.normalize(),
                bar.low.normalize(),
                bar.close.normalize(),
                bar.volume,
                bar.trades,
            )
            for bar in shown
        ),
    )
    typer.echo(f"{len(bars):,} in the state, {len(shown):,} shown")
