"""The wheels: what is in them, and that they hold all it takes to run."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from ingest.process.packages import PACKAGES
from tests.installed import build_wheels
from tests.paths import ROOT


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All wheels, built from here."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


def names_in(wheel: Path) -> set[str]:
    """Return the files of a wheel."""
    return set(ZipFile(wheel).namelist())


def test_the_wheels_bring_these_names_and_no_other(wheels: dict[str, Path]) -> None:
    """Whoever installs them knows what they add to the environment."""
    top = {
        name: {file.partition("/")[0] for file in names_in(wheel)}
        for name, wheel in wheels.items()
    }
    assert top == {
        "tickthrottle": {
            *("archive", "cli", "deploy", "gateway", "ingest", "intake", "pages"),
            *("throttle", "pyspark_tickthrottle.py", "tickthrottle.py"),
            "tickthrottle-0.1.0.dist-info",
        },
        "tickthrottle_client": {
            *("tickthrottle_client", "tickthrottle_client-0.1.0.dist-info"),
        },
        "tickthrottle_load": {"loadtest", "tickthrottle_load-0.1.0.dist-info"},
        "tickthrottle_conformance": {
            *("conformance", "tickthrottle_conformance-0.1.0.dist-info"),
        },
        "tickthrottle_all": {"tickthrottle_all-0.1.0.dist-info"},
    }


def test_every_file_of_a_package_is_in_the_wheel(wheels: dict[str, Path]) -> None:
    """Pages, scripts for Redis, dashboards: what is not Python is there, too."""
    for package in PACKAGES:
        files = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        wheel = "tickthrottle_load" if package == "loadtest" else "tickthrottle"
        packed = names_in(wheels[wheel])
        assert files == {name for name in packed if name.startswith(f"{package}/")}


def test_the_kit_brings_its_transcripts_and_the_specification(
    wheels: dict[str, Path],
) -> None:
    """Whoever installs it needs no clone."""
    packed = names_in(wheels["tickthrottle_conformance"])
    kit = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("conformance/**/*.[tpg]*")}
    spec = {f"conformance/spec/{p.name}" for p in ROOT.glob("docs/spec/*.md")}
    assert {name for name in kit if "__pycache__" not in name} | spec <= packed


def test_the_client_is_typed_and_every_wheel_brings_its_licence(
    wheels: dict[str, Path],
) -> None:
    """A type checker believes it, and the licence goes with every copy."""
    assert "tickthrottle_client/py.typed" in names_in(wheels["tickthrottle_client"])
    for name, wheel in wheels.items():
        licence = f"{name}-0.1.0.dist-info/licenses/LICENSE"
        text = (ROOT / "LICENSE").read_bytes()
        assert ZipFile(wheel).read(licence) == text
