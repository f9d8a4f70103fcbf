"""The job's own code as one file, for the machines that read for it."""

from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

PACKAGES = ("ingest", "throttle")
"""What a task may import of ours; what else it needs is installed on the workers."""


def pack_code(folder: Path) -> Path:
    """Write the packages as they are installed here into a zip; return its path."""
    packed = folder / "tickthrottle.zip"
    with ZipFile(packed, "w") as archive:
        for package in PACKAGES:
            for file in files(package).iterdir():
                if file.is_file():
                    archive.writestr(f"{package}/{file.name}", file.read_bytes())
    return packed
