"""How lines look, and which of them are written."""

import json
import logging
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO

import pytest
import structlog

from cli.logs import configure_logs
from ingest.settings import ProcessSettings


@pytest.fixture(autouse=True)
def _logging_left_as_it_was() -> Iterator[None]:
    handlers = logging.root.handlers[:]
    level = logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def logged(capsys: pytest.CaptureFixture[str], **settings: str) -> list[str]:
    """Return what an error, an info and a debug line become."""
    configure_logs(ProcessSettings.model_validate(settings))
    log = structlog.get_logger()
    log.error("it broke", connection="c-1a2b3c4d")
    log.info("it goes on", batch=7)
    log.debug("it took a while")
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("log_format", ["auto", "json"])
def test_a_line_is_an_object_where_nobody_reads_along(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    """With level and time, ready for whatever collects it."""
    lines = [json.loads(line) for line in logged(capsys, log_format=log_format)]
    assert [line["event"] for line in lines] == ["it broke", "it goes on"]
    assert lines[0]["connection"] == "c-1a2b3c4d"
    assert lines[0]["level"] == "error"
    assert lines[1]["batch"] == 7
    assert lines[1]["timestamp"].endswith("Z")


def test_a_line_is_text_for_people_who_ask_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without colours where they would not be seen."""
    broke, goes_on = logged(capsys, log_format="console")
    assert "it broke" in broke
    assert "connection=c-1a2b3c4d" in broke
    assert "\x1b" not in broke + goes_on


@pytest.mark.parametrize(
    ("level", "lines"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 1)]
)
def test_lines_below_the_level_are_left_out(
    capsys: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    assert len(logged(capsys, log_level=level)) == lines


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_error_is_told_without_what_was_in_variables(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    """A token, or an address with a password, is in some variable of every trace."""
    configure_logs(ProcessSettings.model_validate({"log_format": log_format}))

    def read(token: str) -> None:
        raise ValueError("it cannot be read")

    try:
        read("eyJhbGciOi" + "JIUzI1NiJ9")
    except ValueError:
        structlog.get_logger().exception("it broke")
    logging.getLogger("uvicorn.error").error("it broke", exc_info=True)
    told = capsys.readouterr().err
    assert "it cannot be read" in told
    assert "in read" in told or '"name": "read"' in told
    assert "eyJhbGciOiJIUzI1NiJ9" not in told


def test_lines_go_to_what_stderr_is_when_they_are_written() -> None:
    """What it was has been closed by whoever had replaced it, as test runners do."""
    with redirect_stderr(StringIO()) as before:
        configure_logs(ProcessSettings(log_format="json"))
    before.close()
    with redirect_stderr(StringIO()) as now:
        structlog.get_logger().error("it broke")
    assert "it broke" in now.getvalue()
