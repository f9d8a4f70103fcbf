"""The programs that drive each client of the repository."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import skip_or_fail
from tests.go import go_environment
from tests.node import node_command
from tests.paths import ROOT

DRIVERS = ROOT / "conformance" / "drivers"


def python_driver(*words: str) -> list[str]:
    return [sys.executable, str(DRIVERS / "python_client.py"), *words]


def node_driver(module: Path = ROOT / "pages" / "tick.js") -> list[str]:
    """Return what drives tick.js, or a copy; leave the test out without Node."""
    return [*node_command(), str(DRIVERS / "tick_js.mjs"), str(module)]


def go_driver(folder: Path) -> list[str]:
    """Return what drives the client in Go, built into a folder."""
    if shutil.which("go") is None:
        skip_or_fail("there is no go")
    program = folder / "driver"
    built = subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=DRIVERS / "go",
        env=go_environment(),
        capture_output=True,
        text=True,
    )
    if "dial tcp" in built.stderr or "i/o timeout" in built.stderr:
        skip_or_fail("go reaches no module proxy")
    assert built.returncode == 0, built.stderr
    return [str(program)]
