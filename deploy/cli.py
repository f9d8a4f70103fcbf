"""The command line: one program, a sub-command for each part."""

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from deploy import feeds, inspect, issues, load, reconcile, topic
from deploy.entry import RedisUrl, fail, read_settings
from deploy.logs import configure_logs

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Turn a firehose of stock trades into a calm, exact, two-second stream.\n\n"
    "`run` starts everything on this machine. The other commands start one part "
    "each, or look and change nothing (ledger, windows, trades, rebuild, reconcile, "
    "topology, issues), "
    "against the server at REDIS_URL (redis://127.0.0.1:6379 unless set). "
    "Every setting is also an environment variable, see docs/operations.md.",
)


Port = Annotated[int | None, typer.Option(help="Port of the page. [default: 8000]")]


@app.command()
def run(
    port: Port = None,
    rate: Annotated[
        float | None,
        typer.Option(help="The simulator's trades per second. [default: 750]"),
    ] = None,
    tape: Annotated[
        Path | None, typer.Option(help="Replay this tape in place of the simulator.")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(help="Times the tape's own pace. [default: 1]"),
    ] = None,
) -> None:
    """Run the whole pipeline on this machine, until Ctrl-C.

    Starts an embedded Valkey server, the Spark job, the gateway with its page and a
    feed, restarts what dies, and leaves nothing behind.
    """
    from deploy.local import RunFailed, run_local
    from deploy.settings import RunSettings

    settings = read_settings(RunSettings, port=port, rate=rate, tape=tape, speed=speed)
    try:
        run_local(settings, _stop_on_signal())
    except RunFailed as error:
        fail(str(error))


@app.command()
def throttle(
    job: Annotated[
        str | None,
        typer.Option(help="The job's name; a restart under it continues."),
    ] = None,
    window_ms: Annotated[
        int | None, typer.Option(help="Length of a window. [default: 2000]")
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints. [default: ~/.local/state/...]"),
    ] = None,
    standby: Annotated[
        bool | None,
        typer.Option(
            "--standby", help="Wait, warm, for the running job's end; then take over."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            help="Where Spark runs its tasks, such as spark://host:7077. "
            "[default: this process]"
        ),
    ] = None,
    redis_url: RedisUrl = None,
) -> None:
    """Run the Spark job: cut the log into windows, publish the latest trades.

    Killed at any moment and started again, it goes on without a missing or doubled
    window. Its state is in Redis: it may be started on another machine.
    """
    from throttle.job import ThrottleFailed, run_throttle
    from throttle.settings import ThrottleSettings

    settings = read_settings(
        ThrottleSettings,
        job=job,
        window_ms=window_ms,
        state_dir=state_dir,
        standby=standby,
        spark_master=master,
        redis_url=redis_url,
    )
    configure_logs(settings)
    try:
        run_throttle(settings, _stop_on_signal())
    except ThrottleFailed as error:
        fail(str(error))


@app.command()
def gateway(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")
    ] = None,
    port: Port = None,
    redis_url: RedisUrl = None,
) -> None:
    """Run a gateway: the WebSocket stream, REST and the page."""
    from gateway.server import run_gateway
    from gateway.settings import GatewaySettings

    settings = read_settings(GatewaySettings, host=host, port=port, redis_url=redis_url)
    configure_logs(settings)
    raise typer.Exit(run_gateway(settings))


def _stop_on_signal() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        # Event.set is not reentrant: a second signal must not interrupt it.
        if not received:
            received.append(number)
            stop.set()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)
    return stop


feeds.register(app)
inspect.register(app)
reconcile.register(app)
topic.register(app)
issues.register(app)
load.register(app)


def main() -> None:
    """Run the program."""
    app(prog_name="tickthrottle")
