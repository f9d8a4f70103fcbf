"""Spark's Python processes without a traceback in ordinary work, and none for nothing.

A process that has answered may still have an end mark to flush, and one that plans
batches is asked something when Spark is told to stop. That Spark has hung up is no
news then, but twelve lines and more are printed about it each time.
"""

import os
import sys
import traceback
from types import SimpleNamespace, TracebackType
from typing import Any


def quiet_hang_ups(main: Any = None, *, stays: bool = False) -> None:
    """Let this process say nothing when Spark hangs up, if it is one of Spark's.

    ``main`` is the program's own module. Planners end when they have answered, unless
    one ``stays``: of several queries at a time, one would be asked just when it ends.
    """
    main = sys.modules["__main__"] if main is None else main
    program = getattr(main.__spec__, "name", "")
    if program == "pyspark.daemon":
        quiet_workers(main)
        if sys.argv[-1].startswith("pyspark.sql.worker.") and not stays:
            # It would wait a minute for the next question, with 40 MiB, and there are
            # as many questions as queries. Spark makes sure that a worker lives before
            # it asks.
            main.gc = SimpleNamespace(collect=lambda: os._exit(0))
    elif program.startswith("pyspark."):
        sys.excepthook = _tell


def quiet_workers(daemon: Any) -> None:
    """Let workers of Spark's ``daemon``, which prints what ends them, say nothing."""
    daemon.traceback = SimpleNamespace(
        print_exc=_print_exc, format_exc=traceback.format_exc
    )


def _print_exc() -> None:
    error = sys.exc_info()[1]
    if error is not None:
        _tell(type(error), error, error.__traceback__)


def _tell(
    kind: type[BaseException],
    error: BaseException,
    where: TracebackType | None,
) -> None:
    if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
        traceback.print_exception(kind, error, where)
