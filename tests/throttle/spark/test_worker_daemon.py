"""Spark's Python processes, and what they say."""

import gc
import io
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.serializers import write_int, write_with_length
from pyspark.sql.streaming import python_streaming_source_runner
from pyspark.sql.worker import lookup_data_sources

from tests.conftest import PATIENCE
from throttle.spark.source import TradeLogSource
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


@pytest.mark.parametrize(
    ("program", "ends"),
    [("pyspark.sql.worker.create_data_source", True), ("pyspark.worker", False)],
)
def test_who_plans_ends_when_it_has_answered_and_who_reads_does_not(
    program: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query asks its planners once, and has a task read in every window."""
    ended: list[int] = []
    monkeypatch.setattr(sys, "argv", ["daemon.py", program])
    monkeypatch.setattr(os, "_exit", ended.append)
    main = make_main("pyspark.daemon")
    main.gc = gc
    quiet_hang_ups(main)
    # What Spark's daemon does between two questions.
    main.gc.collect()
    assert ended == [0] * ends


def test_a_planner_that_spark_has_hung_up_on_ends_without_a_word(
    tmp_path: Path,
) -> None:
    """It is a program of its own, which dies of what it cannot tell any more."""
    asked = io.BytesIO()
    source = TradeLogSource({"source": "{}"})
    for part in (b"%d.%d" % sys.version_info[:2], b"", None, pickle.dumps(source)):
        write_int(0, asked) if part is None else write_with_length(part, asked)
    path = str(tmp_path / "spark")
    with socket.socket(socket.AF_UNIX) as spark:
        spark.bind(path)
        spark.listen()
        planner = subprocess.Popen(
            [sys.executable, "-m", python_streaming_source_runner.__name__],
            env={**os.environ, "PYTHON_WORKER_FACTORY_SOCK_PATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        with spark.accept()[0] as connection:
            assert len(connection.recv(4)) == 4  # its process id
            connection.sendall(asked.getvalue())
    assert planner.communicate(timeout=60 * PATIENCE)[1] == ""
    assert planner.returncode != 0


def test_no_other_program_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job itself says what went wrong."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    main = make_main("tickthrottle")
    quiet_hang_ups(main)
    quiet_hang_ups()
    assert main.traceback is None
    assert sys.excepthook is sys.__excepthook__


def test_the_process_in_which_spark_looks_for_sources_loads_it() -> None:
    """It knows nothing else of ours; the job registers its source itself."""
    sys.modules.pop("pyspark_tickthrottle", None)
    found = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), found)
    assert "pyspark_tickthrottle" in sys.modules
    assert found.getvalue() == bytes(4)
