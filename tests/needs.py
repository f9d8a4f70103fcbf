"""Holds every test to its markers: what it starts, and what it is called.

`make test` leaves out by marker whatever needs a JVM, a broker or a browser. A test
that starts one without saying so is refused where it starts it. An id is a name: what
differs by second, folder or machine would have two workers collect different tests.
"""

import sys
from collections.abc import Sequence
from os import fspath
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

FIXTURES = {
    "spark": "spark",
    "kafka": "kafka",
    "own_kafka": "kafka",
    "kafka_storage": "kafka",
    "schema_registry": "kafka",
    "browser": "browser",
    "images": "container",
    "containers": "container",
}
"""Fixtures that start something, and the marker that says so."""

BROWSERS = {"chromium", "google-chrome"}
CONTAINERS = {"podman", "podman-compose"}
JAVAS = {"java", "spark-submit", "spark-class"}
COMMANDS_ON_SPARK = {"throttle", "run", "analytics", "state"}


class NotMarked(AssertionError):
    """A test starts what it has no marker for."""


def need_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return the markers of which a command needs one, none for most commands."""
    program = Path(command[0]).name
    if program in BROWSERS:
        return ("browser",)
    if program in CONTAINERS:
        return ("container",)
    if program in JAVAS:
        # All of Kafka's programs are classes of its package.
        is_kafka = any(word.startswith("kafka.") for word in command)
        return ("kafka",) if is_kafka else ("spark", "kafka")
    names = [Path(word).name for word in command]
    if "tickthrottle" in names[:-1]:
        chosen = command[names.index("tickthrottle") + 1]
        return ("spark",) if chosen in COMMANDS_ON_SPARK else ()
    return ()


class Guard:
    """Refuses a process that the running test has no marker for."""

    def __init__(self) -> None:
        self.item: pytest.Item | None = None
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen" or self.item is None:
            return
        command = arguments[1]
        words = [command] if isinstance(command, str | bytes) else command
        markers = need_of([str(fspath(word)) for word in words])
        if markers and not any(map(self.item.get_closest_marker, markers)):
            names = " or ".join(markers)
            raise NotMarked(f"starts {words[0]}: needs the marker {names}")


def check_fixtures(item: pytest.Item) -> None:
    """Refuse a test whose fixtures start what it has no marker for."""
    for name in getattr(item, "fixturenames", ()):
        need = FIXTURES.get(name)
        if need is not None and item.get_closest_marker(need) is None:
            raise pytest.UsageError(
                f"{item.nodeid}: uses {name}, needs the marker {need}"
            )


def check_id(value: object, argument: str) -> None:
    """Refuse a parameter that would make a bad name; `pytest.param` gives a good one.

    Bytes that are no text may come from a compressor, which writes the time into
    them; a path says where the tests lie.
    """
    if isinstance(value, bytes) and not (value.isascii() and _is_text(value)):
        raise pytest.UsageError(
            f"{argument} {value[:40]!r}: give it an id that is text"
        )
    if isinstance(value, str) and str(ROOT) in value:
        raise pytest.UsageError(f"{argument} {value!r}: give it an id without a folder")


def _is_text(value: bytes) -> bool:
    return all(byte >= 32 or byte in b"\t\r\n" for byte in value)
