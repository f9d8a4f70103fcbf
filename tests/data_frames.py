"""Code that is run where pandas is, in a process of its own."""

import os
import subprocess
import sys

from tests.conftest import skip_or_fail
from tests.paths import ROOT


def run_with_frames(*codes: str) -> list[str]:
    """Run code; return the lines that it prints. Nothing else finds it."""
    folder = ROOT / ".venv" / "notebook"
    if not folder.exists():
        skip_or_fail("pandas is not there (make notebook)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(codes)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
