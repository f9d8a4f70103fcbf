"""Logging of every process: JSON lines, or plain text on a terminal."""

import logging
import sys

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from ingest.settings import ProcessSettings


def log_to_stderr() -> None:
    """Have whatever is logged before ``configure_logs`` go to stderr.

    What a command prints may be read by a program.
    """
    structlog.configure(logger_factory=_stderr_logger)


def configure_logs(settings: ProcessSettings) -> None:
    """Send structlog to stderr: one JSON object per line, or text for people."""
    number = logging.getLevelNamesMapping()[settings.log_level.upper()]
    is_terminal = sys.stderr.isatty()
    is_json = settings.log_format == "json" or (
        settings.log_format == "auto" and not is_terminal
    )
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if is_json:
        processors += [
            # Without local variables: among them are tokens and addresses with
            # passwords.
            structlog.processors.ExceptionRenderer(
                ExceptionDictTransformer(show_locals=False)
            ),
            structlog.processors.JSONRenderer(),
        ]
    else:
        processors += [
            structlog.processors.StackInfoRenderer(),
            structlog.dev.ConsoleRenderer(
                colors=is_terminal,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_stderr_logger,
    )
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr)


def _stderr_logger(*_: object) -> structlog.PrintLogger:
    """Write to what stderr is now: whoever replaces it closes it in the end."""
    return structlog.PrintLogger(sys.stderr)
