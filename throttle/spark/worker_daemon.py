"""Spark's Python processes without a traceback in ordinary work.

A worker that has answered may still have an end mark to flush. That Spark has hung up
is no news then, but Spark's daemon prints twelve lines about it each time.
"""

import sys
import traceback
from types import SimpleNamespace
from typing import Any


def quiet_hang_ups(main: Any = None) -> None:
    """Let the daemon this process was forked from say nothing when Spark hangs up.

    Elsewhere it does nothing. ``main`` is the program's own module.
    """
    main = sys.modules["__main__"] if main is None else main
    if getattr(main.__spec__, "name", "") == "pyspark.daemon":
        main.traceback = SimpleNamespace(
            print_exc=_print_exc, format_exc=traceback.format_exc
        )


def _print_exc() -> None:
    if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
        traceback.print_exc()
