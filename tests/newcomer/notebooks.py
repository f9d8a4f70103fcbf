"""The notebook of the documents, run as Jupyter runs it."""

import json
from pathlib import Path
from typing import Any

from tests.data_frames import run_with_frames
from tests.paths import ROOT

NOTEBOOK = ROOT / "docs" / "prices.ipynb"


def run_notebook(folder: Path, gateway_port: int) -> dict[str, Any]:
    """Run all cells against a gateway; return the notebook with what they print.

    An exception of a cell ends the run. Raises AssertionError.
    """
    text = NOTEBOOK.read_text("utf-8").replace(
        "127.0.0.1:8000", f"127.0.0.1:{gateway_port}"
    )
    given, done = folder / "prices.ipynb", folder / "done.ipynb"
    given.write_text(text, "utf-8")
    run_with_frames(
        "import nbclient, nbformat",
        f"notebook = nbformat.read({str(given)!r}, 4)",
        "nbclient.NotebookClient(notebook, timeout=60).execute()",
        f"nbformat.write(notebook, {str(done)!r})",
    )
    notebook: dict[str, Any] = json.loads(done.read_text("utf-8"))
    return notebook


def printed(notebook: dict[str, Any]) -> list[str]:
    """Return what each cell with code has printed, or shows as text."""
    return [
        "".join(
            "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
            for output in cell["outputs"]
        )
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
