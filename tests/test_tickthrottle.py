"""The program starts with its own packages, or says which file is in the way."""

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from ingest.process.packages import LIBRARIES, PACKAGES
from tests.paths import ROOT

PROGRAM = Path(sys.executable).with_name("tickthrottle")


def run(cwd: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the installed program; return its exit code and what it wrote."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", ["cli.py", "gateway/__init__.py"])
def test_a_module_that_hides_a_package_is_named_and_not_run(
    name: str, tmp_path: Path
) -> None:
    """Nobody's ``cli.py`` is executed in place of our command line."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("print('executed')")
    code, said = run(tmp_path, "--help", PYTHONPATH=str(tmp_path))
    assert code == 3
    assert said == (
        f"tickthrottle: {file} hides a package of tickthrottle: rename it, or take its "
        "folder off PYTHONPATH\n"
    )


def test_what_lies_in_the_working_folder_is_in_nobodys_way(tmp_path: Path) -> None:
    """The program looks where it is installed, and so do the processes it starts."""
    for package in PACKAGES:
        (tmp_path / f"{package}.py").write_text("raise SystemExit('executed')")
    code, said = run(tmp_path, "instruments", "simulated", "--instruments", "1")
    assert (code, len(said.splitlines())) == (0, 2)


def test_the_names_are_those_of_the_packages() -> None:
    """A package that is added is looked for, too."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests", "bench", "conformance"} == set(PACKAGES)


def test_a_library_on_the_path_does_not_take_the_installed_ones_place(
    tmp_path: Path,
) -> None:
    """Another Spark, above all: it is named before anything of it is imported."""
    file = tmp_path / "pyspark" / "__init__.py"
    file.parent.mkdir()
    file.write_text("print('executed')")
    code, said = run(tmp_path, "--help", PYTHONPATH=str(tmp_path))
    assert code == 3
    assert said == (
        f"tickthrottle: {file} hides the one that is installed with tickthrottle: take "
        "its folder off PYTHONPATH\n"
    )


def test_the_installed_libraries_may_be_on_the_path_and_so_may_sparks_own(
    tmp_path: Path,
) -> None:
    """The same files are nobody's rivals; spark-submit brings a PySpark."""
    import redis

    installed = str(Path(redis.__file__).parents[1])
    assert run(tmp_path, "--version", PYTHONPATH=installed)[0] == 0
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    submitted = {"PYSPARK_GATEWAY_PORT": "1", "PYTHONPATH": str(tmp_path)}
    assert run(tmp_path, "--version", **submitted)[0] == 0


def test_the_libraries_are_those_of_the_project() -> None:
    """A library that is added is looked for, too."""
    own = {f"tickthrottle{end}" for end in ("", "_client", "_conformance", "_load")}
    named = {"pyjwt": "jwt", "python_dateutil": "dateutil"}
    lists = []
    for folder in (ROOT, ROOT / "packaging" / "load"):
        text = (folder / "pyproject.toml").read_text("utf-8")
        project = tomllib.loads(text)["project"]
        extras = project.get("optional-dependencies", {})
        lists += [project["dependencies"], *extras.values()]
    needed = {re.split(r"[^\w-]", need)[0].replace("-", "_") for need in chain(*lists)}
    assert {named.get(name, name) for name in needed - own} == set(LIBRARIES)
