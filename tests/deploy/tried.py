"""Tells whether images, services and pods must be tried again.

Their tests take long, and what they alone try is in files that seldom change; the code
in the images is tried by every other test. ``tried.json`` has the digest of each of
these files as it was when all tests passed. ``python -m tests.deploy.tried`` says
whether one has changed, and ends with 1 if so; it needs nothing but Python. ``--try``
runs the tests, and notes the digests if all passed and none was left out.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.paths import ROOT

NOTE = ROOT / "tests" / "deploy" / "tried.json"
MADE_OF = (
    *("deploy/Containerfile", "deploy/compose.yaml", ".dockerignore"),
    *("deploy/kubernetes/**/*", "deploy/systemd/*", "deploy/caddy/*"),
    "deploy/redis/*",
    *("deploy/prometheus/*", "deploy/grafana/**/*", ".ci/containers.conf"),
    *("docs/containers.md", "docs/kubernetes.md", "docs/services.md"),
    # What is installed, and how.
    *(
        "locks/requirements.lock",
        "locks/requirements-build.lock",
        "locks/requirements-gateway.lock",
    ),
    *("pyproject.toml", "clients/python/pyproject.toml"),
    *("packaging/all/*", "packaging/load/*"),
    "packaging/try_images.py",
    # What tries it.
    *("tests/deploy/*.Containerfile", "tests/deploy/here.yaml", "tests/installed.py"),
    *("tests/deploy/containers.py", "tests/deploy/pods.py", "tests/deploy/follower.py"),
    *("tests/deploy/test_containers.py", "tests/packaging/test_kubernetes.py"),
    *("tests/packaging/test_systemd.py", "tests/deploy/tried.py"),
)
"""Patterns of files; each has one at least."""

SHOWN = 4


def digests(folder: Path = ROOT) -> dict[str, str]:
    """Return the digest of each file of ``MADE_OF`` in a project's folder, by path."""
    paths = {path for pattern in MADE_OF for path in folder.glob(pattern)}
    return {
        path.relative_to(folder).as_posix(): _digest(path.read_bytes())
        for path in sorted(paths)
        if path.is_file()
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def note_of(files: Mapping[str, str]) -> str:
    """Return the text of a note.

    The digest of all differs with each of them: two branches that tried something
    different cannot be merged unseen.
    """
    everything = _digest(json.dumps(files, sort_keys=True).encode())
    return json.dumps({"all": everything, "files": files}, indent=1) + "\n"


def changed(note: str, files: Mapping[str, str]) -> list[str]:
    """Return the files that are not as they were noted, sorted."""
    if note == note_of(files):
        return []
    noted = json.loads(note)["files"] if note else {}
    paths = noted.keys() | files.keys()
    return sorted(path for path in paths if noted.get(path) != files.get(path)) or [
        NOTE.name
    ]


def sentence(paths: list[str]) -> str:
    """Return what is decided, given the changed files, and why."""
    if not paths:
        return (
            "left out: images, services and pods; no file that they depend on has "
            "changed since they were tried (make test-deploy tries them)"
        )
    further = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return (
        f"to be tried: images, services and pods; changed since they were tried: "
        f"{', '.join(paths[:SHOWN])}{further}"
    )


def try_all() -> int:
    """Run the tests; note the digests if all passed and none was left out."""
    # Here: who only asks may have no pytest.
    import pytest

    class Skipped:
        count = 0

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            self.count += report.skipped

    skipped, files = Skipped(), digests()
    code = pytest.main(["-m", "container", "--durations", "10"], plugins=[skipped])
    if code == 0 and skipped.count == 0:
        NOTE.write_text(note_of(files), "utf-8")
    elif code == 0:
        print(f"not noted as tried: {skipped.count} tests were left out")
    return code


def main() -> int:
    """Say what is to be tried, or try it; return the exit code."""
    if sys.argv[1:] == ["--try"]:
        return try_all()
    note = NOTE.read_text("utf-8") if NOTE.is_file() else ""
    paths = changed(note, digests())
    print(sentence(paths))
    return int(bool(paths))


if __name__ == "__main__":
    sys.exit(main())
