"""Tests are held to their markers, and ids to being names."""

import subprocess

import pytest

from tests.needs import NotMarked, check_id, need_of
from tests.paths import ROOT

NEEDS = {
    "/usr/bin/java -version": "spark or kafka",
    "/venv/pyspark/bin/spark-submit pyspark-shell": "spark or kafka",
    "/usr/bin/java -cp x kafka.Kafka server.properties": "kafka",
    "/usr/bin/chromium --headless": "browser",
    "podman image exists a": "container",
    "python -P -m tickthrottle throttle --job a": "spark",
    "/venv/bin/tickthrottle run": "spark",
    "python -m tickthrottle gateway": "",
    "valkey-server --port 7": "",
}


def test_a_command_tells_what_it_needs() -> None:
    """By its program, or by the part of the product that it starts."""
    assert {line: " or ".join(need_of(line.split())) for line in NEEDS} == NEEDS


def test_a_test_without_the_marker_starts_nothing() -> None:
    """It fails where it would start it; this one has no marker either."""
    with pytest.raises(NotMarked, match="starts java: needs the marker spark or kafka"):
        subprocess.run(["java", "-version"])


def test_what_is_no_name_is_refused() -> None:
    """Bytes that are no text, and the folder of the project; text is left alone."""
    for value in (b"\xff" * 4, b"\x00", str(ROOT / "x")):
        with pytest.raises(pytest.UsageError, match="give it an id"):
            check_id(value, "argument")
    for value in ("text", b"text\r\n", 5, None):
        check_id(value, "argument")
