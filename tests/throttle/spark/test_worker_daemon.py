"""Spark's Python processes, and what they say."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.worker import lookup_data_sources

from throttle.spark.worker_daemon import quiet_hang_ups


def make_main(name: str) -> Any:
    """Make the main module of a program."""
    return SimpleNamespace(__spec__=SimpleNamespace(name=name), traceback=None)


@pytest.mark.parametrize(
    ("error", "is_told"),
    [(BrokenPipeError(32), False), (ConnectionResetError(104), False), (OSError, True)],
)
def test_a_worker_that_spark_has_hung_up_on_ends_without_a_word(
    error: Any, is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is there to be told; any other error is printed as before."""
    main = make_main("pyspark.daemon")
    quiet_hang_ups(main)
    try:
        raise error
    except OSError:
        main.traceback.print_exc()
    assert ("Traceback" in capsys.readouterr().err) == is_told


def test_no_other_program_is_touched() -> None:
    """The job itself says what went wrong."""
    main = make_main("tickthrottle")
    quiet_hang_ups(main)
    quiet_hang_ups()
    assert main.traceback is None


def test_the_process_in_which_spark_looks_for_sources_loads_it() -> None:
    """It knows nothing else of ours; the job registers its source itself."""
    sys.modules.pop("pyspark_tickthrottle", None)
    found = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), found)
    assert "pyspark_tickthrottle" in sys.modules
    assert found.getvalue() == bytes(4)
