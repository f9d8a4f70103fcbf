"""The machine that figures come from."""

import sys
from importlib.metadata import version

import pytest

from loadtest.system.machine import describe_machine


def test_a_library_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A deployment elsewhere is loaded, and reported on, without Spark."""
    libraries = (f"uvicorn {version('uvicorn')}", f"pyspark {version('pyspark')}")
    assert all(words in describe_machine() for words in libraries)
    # No folder has libraries.
    monkeypatch.setattr(sys, "path", [])
    assert not any(words in describe_machine() for words in libraries)
