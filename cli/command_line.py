"""The command line: one program, a sub-command for each part."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import requires, version
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.archive_command import archive
from cli.commands.arguments import format_moment
from cli.commands.backtest import backtest
from cli.commands.decode import decode
from cli.commands.entry import FAILED, fail, failing_on, stop_on_signal
from cli.commands.feeds import TAPE_FORM, feed, ingest, replay, simulate
from cli.commands.instruments import instruments
from cli.commands.ledger import ledger
from cli.commands.load import load
from cli.commands.rebuild import rebuild
from cli.commands.reconcile import reconcile
from cli.commands.setting_options import AsJson, options_of, spell_lines
from cli.commands.tables import print_items
from cli.commands.topic import topic
from cli.commands.topology import topology
from cli.commands.trades import trades
from cli.commands.unknown_variables import unknown_variables
from cli.commands.windows import windows
from cli.examples import examples_of
from cli.key_command import key
from cli.local.settings import RunSettings
from cli.logs import configure_logs, log_to_stderr
from cli.terminal.inspect_file import inspect
from cli.terminal.status import status
from cli.terminal.watch import watch
from cli.verify_command import verify
from gateway.settings import GatewaySettings
from ingest.sources.trade_lines import LineOptions
from ingest.tradelog.speedups import speedups_version
from intake.settings import IntakeSettings
from throttle.settings import AnalyticsSettings, ThrottleSettings

if TYPE_CHECKING:
    from throttle.analytics.moves.recent_trades import HeldTrade
    from throttle.contract.bars import Bar

_OF_HELD_BARS = (
    *("start", "isin", "open#", "high#", "low#", "close#", "volume#", "trades#"),
)
_OF_HELD_TRADES = (
    *("time", "isin", "seq#", "price#", "lowest#", "rise %#", "highest#", "fall %#"),
)

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        compiled = speedups_version()
        speedups = f", speedups {compiled}" if compiled else ""
        typer.echo(f"tickthrottle {version('tickthrottle')}{speedups}")
        raise typer.Exit


@app.callback()
def program(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Turn a firehose of stock trades into a calm, exact, two-second stream.

    `run` starts everything on this machine. The other commands start one part each,
    load the instrument table (instruments), say what a file is (inspect), make windows
    and bars of one (backtest), try a decoder (decode), or look and change nothing
    (watch, status, ledger, windows, trades, rebuild, verify, reconcile, topology),
    against the server at REDIS_URL, or the pipeline that `run` has started here. Every
    setting is also an environment variable, see docs/settings.md.
    """
    log_to_stderr()
    for sentence in unknown_variables(os.environ):
        typer.echo(f"tickthrottle: {sentence}", err=True)


@app.command(epilog=examples_of("run"))
@options_of(
    RunSettings,
    *("port", "rate", "tape", "speed", "feed", "analytics", "trade_log"),
    *("kafka_servers", "kafka_topic", "kafka_config", "decoder", "start"),
    schema_registry_url="--schema-registry",
    feed_symbols="--symbols",
    instruments_file="--instruments",
    archive="--archive/--no-archive",
)
@TAPE_FORM
def run(settings: RunSettings, lines: LineOptions) -> None:
    """Run the whole pipeline on this machine, until Ctrl-C.

    Starts an embedded Valkey server, the Spark job, the gateway with its page, a
    feed, the archive and the analytics job. Each of them is started again when it
    dies, the server with all it had. At the end nothing is left running.

    With --feed none there is no feed: others append, or --trade-log kafka reads a
    topic that exists.
    """
    from cli.local.ports_and_memory import RunFailed
    from cli.local.runner import run_local
    from ingest.instrument_table.instrument_entry import BadInstruments
    from ingest.sources.tape import TapeError, check_tape

    arguments = spell_lines(lines)
    if settings.tape is None and arguments:
        fail(f"{arguments[0]}: is for a tape, and there is none", code=2)
    with failing_on(BadInstruments, TapeError, RunFailed):
        if settings.tape is not None:
            # Before anything is started.
            check_tape(settings.tape, lines, settings.instruments_file)
        run_local(settings, stop_on_signal(), arguments, lines.venue)


@app.command(epilog=examples_of("throttle"))
@options_of(
    ThrottleSettings,
    *("job", "standby", "spark_master", "redis_url"),
    spark_master="--master",
)
def throttle(settings: ThrottleSettings) -> None:
    """Run the Spark job: cut the log into windows, publish the latest trades.

    Killed at any moment and started again, it goes on without a missing or doubled
    window. Its state is in Redis, so it can be started on another machine.
    """
    from throttle.job import ThrottleFailed, run_throttle

    configure_logs(settings)
    with failing_on(ThrottleFailed):
        run_throttle(settings, stop_on_signal())


@app.command(epilog=examples_of("analytics"))
@options_of(
    AnalyticsSettings,
    *("standby", "spark_master", "redis_url"),
    analytics="--only",
    spark_master="--master",
)
def analytics(settings: AnalyticsSettings) -> None:
    """Run the analytics job: bars, movers and more, from the trade log.

    Killed at any moment and started again, it goes on where its checkpoint says, and
    publishes nothing twice.
    """
    from throttle.analytics.analytics_job import AnalyticsFailed, run_analytics

    configure_logs(settings)
    with failing_on(AnalyticsFailed):
        run_analytics(settings, stop_on_signal())


@app.command(epilog=examples_of("state"))
@options_of(AnalyticsSettings, "state_dir")
def state(
    *,
    product: Annotated[
        str, typer.Option(help="Whose state: bars, movers, bursts or moves.")
    ] = "bars",
    isin: Annotated[
        str | None, typer.Option(help="Show what it holds of this instrument only.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            help="As it was after this batch of Spark's; by default the last."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, help="Show at most this many, the newest."),
    ] = 20,
    json: AsJson = False,
    settings: AnalyticsSettings,
) -> None:
    """Show what Spark's state store holds of a product.

    Of bars and movers that are bars, of bursts those that go on, of moves the trades of
    the last spans, with how far each is from its span's lowest and highest price.

    Starts a Spark of its own, which takes some seconds, and reads the checkpoint; the
    job may run meanwhile. See --state-dir, or TICKTHROTTLE_ANALYTICS_CHECKPOINT.
    """
    from throttle.analytics.product_query import NoState, ask_state
    from throttle.analytics.products import BY_NAME

    if product not in BY_NAME:
        fail(f"product {product!r}: must be one of {', '.join(BY_NAME)}", code=2)
    with failing_on(NoState):
        rows: Sequence[Any] = ask_state(settings, BY_NAME[product], batch, isin)
    shown = rows[-limit:]
    if product == "moves":
        print_items(shown, json, held_object, _OF_HELD_TRADES, _trade_cells)
    else:
        print_items(shown, json, held_object, _OF_HELD_BARS, _bar_cells)
    if not json:
        typer.echo(f"{len(rows):,} in the state, {len(shown):,} shown")


def held_object(row: Bar | HeldTrade) -> dict[str, Any]:
    """Return what is shown of a row: all but whether a bar is closed.

    That is decided by the log's clock, which the state does not have.
    """
    fields = row.to_object()
    return {name: value for name, value in fields.items() if name != "closed"}


def _bar_cells(bar: Bar) -> tuple[object, ...]:
    from throttle.contract.bars import text

    amounts = bar.open, bar.high, bar.low, bar.close, bar.volume
    texts = ("-" if amount is None else text(amount) for amount in amounts)
    return format_moment(bar.start_ms), bar.isin, *texts, bar.trades


def _trade_cells(held: HeldTrade) -> tuple[object, ...]:
    from throttle.contract.bars import text

    trade = held.trade
    amounts = trade.price, held.lowest, held.rise, held.highest, held.fall
    moment = format_moment(trade.time_us // 1000)
    return moment, held.isin, trade.seq, *map(text, amounts)


@app.command(epilog=examples_of("prepare"))
@options_of(ThrottleSettings)
def prepare(settings: ThrottleSettings) -> None:
    """Prepare this machine for the job, once after an installation.

    Takes less than a minute, and 200 MB of disk. Every later start of Spark takes a
    third less time.
    """
    from throttle.prepare import PrepareFailed, make_class_archive

    with failing_on(PrepareFailed):
        archive = make_class_archive(settings, stop_on_signal())
    typer.echo(f"prepared: {archive}, {archive.stat().st_size / 1e6:.0f} MB")


@app.command(epilog=examples_of("gateway"))
@options_of(GatewaySettings, "host", "port", "redis_url", "workers", "follow")
def gateway(settings: GatewaySettings) -> None:
    """Run a gateway: the WebSocket stream, REST and the page."""
    from gateway.server import GatewayFailed, run_gateway
    from gateway.supervisor import run_workers

    configure_logs(settings)
    with failing_on(GatewayFailed):
        if settings.workers == 1:
            run_gateway(settings)
        else:
            run_workers(settings, configure_logs)


@app.command(epilog=examples_of("intake"))
@options_of(
    IntakeSettings,
    "redis_url",
    intake_host="--host",
    intake_port="--port",
)
def intake(settings: IntakeSettings) -> None:
    """Take trades over HTTP: POST /v1/trades appends them to the trade log."""
    from intake.intake_server import IntakeFailed, run_intake

    configure_logs(settings)
    with failing_on(IntakeFailed):
        run_intake(settings)


for command in (
    *(simulate, replay, ingest, inspect, backtest, decode, feed, topic, key),
    archive,
    *(watch, status, ledger, windows, trades, rebuild, verify, reconcile, topology),
    load,
):
    app.command(epilog=examples_of(command.__name__))(command)
app.add_typer(instruments, name="instruments")


def main() -> None:
    """Run the program. Where a library of an extra is missing, say so, and end."""
    try:
        app(prog_name="tickthrottle")
    except ModuleNotFoundError as error:
        extra = _extra_with(str(error.name))
        if extra is None:
            raise
        sys.stderr.write(
            f"tickthrottle: this needs {error.name}, which is not installed: "
            f"pip install 'tickthrottle[{extra}]'\n"
        )
        sys.exit(FAILED)


def _extra_with(library: str) -> str | None:
    """Return the extra of this distribution that brings a library, the smallest."""
    module = library.partition(".")[0]
    distribution = {"loadtest": "tickthrottle-load"}.get(module, module)
    extras = set()
    for requirement in requires("tickthrottle") or ():
        name, _, condition = requirement.partition(";")
        extra = re.search(r"extra == ['\"](.+)['\"]", condition)
        if extra and re.split(r"[^\w.-]", name)[0] == distribution:
            extras.add(extra[1])
    return min(extras - {"all"} or extras, default=None)
