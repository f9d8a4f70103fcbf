"""Pack clients/js and the gateway's tick.js as an npm tarball: pack_npm.py FOLDER."""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]


def pack(target: Path) -> None:
    """Write the tarball into a folder that exists. Fetches nothing."""
    with TemporaryDirectory() as folder:
        package = Path(folder) / "package"
        shutil.copytree(ROOT / "clients" / "js", package)
        for name in ("tick.js", "tick-chain.js"):
            shutil.copy(ROOT / "pages" / name, package)
        options = ("--silent", "--offline", "--pack-destination", target.resolve())
        subprocess.run(
            ["npm", "pack", *options], cwd=package, check=True, stdout=sys.stderr
        )


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
