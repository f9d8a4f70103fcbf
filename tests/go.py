"""The environment of the Go command."""

import os
from pathlib import Path


def go_environment() -> dict[str, str]:
    """Return it, with a home: Go keeps its modules there, and asks nobody else."""
    return {"HOME": str(Path.home()), **os.environ}
