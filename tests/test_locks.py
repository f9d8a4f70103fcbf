"""The locks: hashed, neutral, in step with each other, above known holes."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {
    "requirements-build.lock": ["--only-group", "build"],
    "requirements.lock": ["--no-dev"],
    "requirements-dev.lock": ["--only-dev"],
}

# The lowest versions without a known hole or a fault that matters here: what each
# fixes is in docs/operations.md.
FLOORS = {
    "uvicorn": (0, 52, 1),
    "starlette": (1, 3, 1),
    "fastapi": (0, 133),
    "h11": (0, 16, 0),
    "websockets": (13, 0),
    "redis": (8, 0),
    "pyjwt": (2, 12, 0),
    "orjson": (3, 11, 6),
    "pyspark": (4, 0, 1),
}


def locked_versions() -> dict[str, str]:
    """Return {package: version} of uv.lock."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    return {p["name"]: p.get("version", "") for p in lock["package"]}


@pytest.mark.parametrize("name", LOCKS)
def test_a_requirements_file_is_the_export_of_uv_lock(name: str) -> None:
    """`make lock` was run after the last change."""
    command = ["export", "-q", "--frozen", "--no-emit-project", "--no-header"]
    done = subprocess.run(
        [Path(sys.executable).with_name("uv"), *command, *LOCKS[name]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", LOCKS)
def test_every_requirement_has_a_version_and_hashes_and_no_address(name: str) -> None:
    """What is installed is what was locked, from any index the user's pip knows."""
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    requirements = re.split(r"\n(?=[a-z0-9])", text)
    for requirement in requirements:
        assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_uv_lock_names_only_the_public_index() -> None:
    """No mirror of anybody's machine leaks into the lock."""
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


@pytest.mark.parametrize("package", FLOORS)
def test_a_locked_version_is_above_its_floor(package: str) -> None:
    """A downgrade below a known hole does not go unseen."""
    version = tuple(int(n) for n in re.findall(r"\d+", locked_versions()[package])[:3])
    assert version >= FLOORS[package]


def test_packages_that_must_not_be_there_are_not() -> None:
    """No form parser (a row of holes, no use for it) and no pandas."""
    assert not {"python-multipart", "pandas"} & locked_versions().keys()
