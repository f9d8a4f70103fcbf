"""What every command begins and ends with: its settings, and one clear sentence."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from cli.local.pipelines import NotOne, join_pipeline
from ingest.process.redact import problems_of
from ingest.settings import TopicSettings
from tickthrottle_client.harmless_text import harmless

FAILED = 3
"""Exit code of what could not be done, or not go on. 1 says that what was looked at is
not right, 2 that an option or a setting is bad.
"""

S = TypeVar("S", bound=BaseModel)


def read_settings(kind: type[S], **given: Any) -> S:
    """Build settings from the environment and what was given; end on a bad one.

    None and an empty list are what was not given. A command that may be given a server
    (``redis_url`` among the names) finds the pipeline that runs on this machine, and
    says so.
    """
    values = {k: v for k, v in given.items() if v is not None and v != []}
    try:
        if "redis_url" not in given or not issubclass(kind, TopicSettings):
            return kind(**values)
        settings, pipeline = join_pipeline(kind, values)
    except ValidationError as error:
        fail(problems_of(error), code=2)
    except NotOne as error:
        fail(str(error), code=2)
    if pipeline is not None:
        sys.stderr.write(f"tickthrottle: with the pipeline of {pipeline}\n")
    return settings


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End the command with one sentence on stderr."""
    sys.stderr.write(f"tickthrottle: {harmless(message)}\n")
    raise typer.Exit(code)


@contextmanager
def failing_on(*kinds: type[Exception], code: int = FAILED) -> Iterator[None]:
    """End the command with the sentence of an error of these kinds, in this block."""
    try:
        yield
    except kinds as error:
        fail(str(error), code)


def stop_on_signal() -> threading.Event:
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
