"""Try each part of a release in an empty environment: try_release.py FOLDER.

What the wheels ask for comes from the default index, so this needs a network.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from venv import EnvBuilder


def try_python(packages: list[Path], program: list[str], folder: Path) -> None:
    """Install into a new environment and run one of its programs."""
    EnvBuilder(with_pip=True).create(folder)
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "install"]
    _run([*pip, *packages], folder)
    _run([folder / "bin" / program[0], *program[1:]], folder)


def try_npm(tarball: Path, folder: Path) -> None:
    """Install into an empty project and import it."""
    folder.mkdir()
    (folder / "package.json").write_text(json.dumps({"type": "module"}))
    _run(["npm", "install", "--silent", "--offline", "--no-audit", tarball], folder)
    line = 'import { TickClient } from "tickthrottle-client"; new TickClient("ws://x");'
    _run(["node", "--input-type=module", "--eval", line], folder)


def try_site(site: Path) -> None:
    """Look for its front page, its search and its references."""
    pages = ("index.html", "search/search_index.json", "rest-reference.html")
    missing = [page for page in pages if not (site / page).is_file()]
    if missing:
        raise SystemExit(f"{site}: lacks {', '.join(missing)}")


def try_release(dist: Path) -> None:
    """Try wheels, sdist, npm tarball and site."""
    [product] = dist.glob("tickthrottle-*.whl")
    [client] = dist.glob("tickthrottle_client-*.whl")
    [load] = dist.glob("tickthrottle_load-*.whl")
    [kit] = dist.glob("tickthrottle_conformance-*.whl")
    [sdist] = dist.glob("tickthrottle-*.tar.gz")
    [tarball] = dist.glob("tickthrottle-client-*.tgz")
    imports = ["python", "-c", "from tickthrottle_client import TickClient"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        try_python([client], imports, folder / "client")
        try_python([product, client], ["tickthrottle", "--version"], folder / "wheel")
        try_python(
            [product, client, load],
            ["python", "-c", "import loadtest.command"],
            folder / "load",
        )
        judging = ["tickthrottle-conformance", "--help"]
        try_python([kit], judging, folder / "conformance")
        for speedups in dist.glob("tickthrottle_speedups-*-linux_*.whl"):
            loaded = ["python", "-c", "import tickthrottle_speedups"]
            try_python([speedups], loaded, folder / "speedups")
        try_python([sdist, client], ["tickthrottle", "--version"], folder / "sdist")
        try_npm(tarball, folder / "npm")
    try_site(dist / "site")


def _run(command: list[str | Path], folder: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run(command, cwd=folder, env=kept, check=True)


if __name__ == "__main__":
    try_release(Path(sys.argv[1]).resolve())
