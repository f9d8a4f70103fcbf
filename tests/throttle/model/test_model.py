"""Publish, take-over, restore and resume, in every order of their steps."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail

MODEL = Path(__file__).with_name("publish.pml")
MUTANTS = sorted(set(re.findall(r"#ifn?def (NO_\w+)", MODEL.read_text("utf-8"))))
ENOUGH_STATES = 100_000
"""Fewer would mean that the model stands still somewhere."""


def search(folder: Path, *defines: str) -> str:
    """Have Spin go through all states; return its report."""
    for program in ("spin", "cc"):
        if shutil.which(program) is None:
            skip_or_fail(f"the model of the protocol needs {program}")
    flags = [f"-D{name}" for name in defines]
    for command in (
        ["spin", *flags, "-a", str(MODEL)],
        ["cc", "-O2", "-DSAFETY", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=folder, check=True, timeout=60)
    # -E: a job that waits is no fault. -m: deep enough for every order.
    done = subprocess.run(
        ["./pan", "-E", "-m10000"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def test_no_order_of_steps_breaks_a_promise(tmp_path: Path) -> None:
    """A place has one content, windows are a chain, a resume shows what is there."""
    report = search(tmp_path)

    assert "errors: 0" in report, report
    assert "max search depth too small" not in report
    states = re.search(r"(\d+) states, stored", report)
    assert states is not None
    assert int(states[1]) > ENOUGH_STATES


@pytest.mark.parametrize("guard", MUTANTS)
def test_a_guard_that_is_missing_is_found(tmp_path: Path, guard: str) -> None:
    """None of the guards is there for nothing, and the model sees each."""
    assert "errors: 1" in search(tmp_path, guard)


def test_every_guard_has_its_mutant() -> None:
    """The list of them is read from the model: it must not come out empty."""
    assert len(MUTANTS) >= 5
