"""An environment with the built wheels, and with exactly what they ask for.

What it takes of other packages is linked from the environment of the tests, after the
names in the wheels' metadata: nothing is fetched.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.paths import ROOT

PACKAGING = ROOT / "packaging"
NAMES = ("", "client", "load", "all", "conformance")
OURS_APART = tuple(PACKAGING / name for name in NAMES[2:])
PROJECTS = (ROOT, ROOT / "clients" / "python", *OURS_APART)
OURS = tuple(f"tickthrottle{name and '-'}{name}" for name in NAMES)
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def build_wheels(folder: Path) -> dict[str, Path]:
    """Build all wheels as ``make dist`` does; return them by distribution."""
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    subprocess.run([*PIP, "wheel", *options, *PROJECTS], check=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


def install(wheels: Iterable[Path], folder: Path) -> Path:
    """Install some wheels into a new environment; return its bin."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    options = ("install", "--no-index", "--no-deps")
    subprocess.run([*PIP, "--python", python, *options, *wheels], check=True)
    return link_needs(folder)


def link_needs(folder: Path) -> Path:
    """Link what the wheels of an environment ask for; return its bin."""
    [packages] = folder.glob("lib/*/site-packages")
    seen: set[str] = set()
    for home in packages.glob("tickthrottle*.dist-info"):
        for other in _needed_by(Distribution.at(home), packages, set(), seen):
            _link(other, packages)
    return folder / "bin"


def _needed_by(
    package: Distribution, packages: Path, extras: set[str], seen: set[str]
) -> Iterator[Distribution]:
    """Yield what a package with some extras needs, and what that needs in turn.

    Our own distributions are those of the new environment.
    """
    path = [str(packages), *sys.path]
    for text in package.requires or ():
        wanted = Requirement(text)
        marker, key = wanted.marker, f"{wanted.name}{sorted(wanted.extras)}"
        applies = any(
            marker is None or marker.evaluate({"extra": e}) for e in extras or {""}
        )
        if not applies or not seen.isdisjoint({key, wanted.name}):
            continue
        seen.add(key)
        other = next(iter(Distribution.discover(name=wanted.name, path=path)))
        if wanted.name not in OURS:
            yield other
        yield from _needed_by(other, packages, wanted.extras, seen)


def _link(package: Distribution, packages: Path) -> None:
    for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        link = packages / name
        if not link.exists():
            link.symlink_to(Path(str(package.locate_file(name))))
