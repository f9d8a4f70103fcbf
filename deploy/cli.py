"""The command line: one program, a sub-command for each part."""

import signal
import threading
from types import FrameType

import typer

from deploy.logs import configure_logs

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


@app.command()
def throttle() -> None:
    from throttle.job import run_throttle
    from throttle.settings import ThrottleSettings

    s = ThrottleSettings()
    configure_logs(s.log_level)
    run_throttle(s, stop_on_signal())


def stop_on_signal() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set."""
    stop = threading.Event()

    def set_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, set_stop)
    signal.signal(signal.SIGTERM, set_stop)
    return stop


@app.command()
def x() -> None: ...


def main() -> None:
    app()
