"""Commands that are tested take part in no pipeline that somebody has left running."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_pipeline_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs note where they are in this folder; a command without a server looks there.

    A test that starts a run of its own, or leaves a note, names another folder.
    """
    monkeypatch.setenv("TICKTHROTTLE_STATE_DIR", str(tmp_path / "no-runs"))
