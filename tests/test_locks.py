"""The locks: hashed, neutral, in step with each other, above known holes."""

import json
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.tidy import check

LOCKS = {
    "locks/requirements-build.lock": ["--only-group", "build"],
    "locks/requirements.lock": ["--no-dev", "--all-extras"],
    "locks/requirements-gateway.lock": ["--no-dev"],
    "locks/requirements-dev.lock": ["--only-dev"],
    "locks/requirements-notebook.lock": ["--only-group", "notebook"],
    "locks/requirements-site.lock": ["--only-group", "site"],
    "locks/requirements-wheels.lock": ["--only-group", "wheels"],
}


OURS = {f"tickthrottle{end}" for end in ("", "-client", "-load", "-all")}


def floors() -> dict[str, tuple[str, str]]:
    """Return {package: (least version, why)}, as operators are told."""
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    table = page.partition("## Version floors")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([0-9.]+) \| (.+) \|$", table, re.MULTILINE)
    return {package: (version, reason) for package, version, reason in rows}


FLOORS = floors()


def ordered(version: str) -> tuple[int, ...]:
    """Return what versions are compared by."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def locked_versions() -> dict[str, str]:
    """Return {package: version} of uv.lock."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    return {p["name"]: p.get("version", "") for p in lock["package"]}


@pytest.mark.parametrize(
    ("image", "lock"),
    [
        ("gateway", "locks/requirements-gateway.lock"),
        ("all", "locks/requirements.lock"),
    ],
)
def test_the_list_of_what_an_image_holds_is_that_of_its_lock(
    image: str, lock: str, tmp_path: Path
) -> None:
    """As ``make sbom`` writes it: every package with its version, and no other."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    [words] = re.findall(
        rf"^\t\$\(BIN\)/uv (export .*) -o dist/tickthrottle-{image}.cdx.json$",
        makefile,
        re.MULTILINE,
    )
    file = tmp_path / "sbom.json"
    command = words.replace("--locked", "--frozen").split()
    program = Path(sys.executable).with_name("uv")
    subprocess.run([program, *command, "-o", file], cwd=ROOT, check=True)
    components = json.loads(file.read_text("utf-8"))["components"]
    known = {f"{c['name']}=={c['version']}" for c in components if "version" in c}
    packages = re.findall(r"^[\w.-]+==[\w.]+", (ROOT / lock).read_text("utf-8"), re.M)
    assert set(packages) <= known
    assert {name.partition("==")[0] for name in known - set(packages)} <= OURS


def test_a_requirements_file_is_the_export_of_uv_lock() -> None:
    """`make lock` was run after the last change."""
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "export", "-q", "--frozen", "--no-emit-workspace", "--no-header"]
    check(
        name
        for name, options in LOCKS.items()
        if subprocess.check_output([*command, *options], cwd=ROOT, text=True)
        != (ROOT / name).read_text("utf-8")
    )


def test_every_requirement_has_a_version_and_hashes_and_no_address() -> None:
    """What is installed is what was locked, from any index the user's pip knows."""
    for name in LOCKS:
        text = (ROOT / name).read_text("utf-8")
        assert "://" not in text, name
        assert "--index" not in text, name
        for requirement in re.split(r"\n(?=[a-z0-9])", text):
            assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+", requirement), requirement
            assert "--hash=sha256:" in requirement, requirement


def test_uv_lock_names_only_the_public_index() -> None:
    """No mirror of anybody's machine leaks into the lock."""
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_a_locked_version_is_above_its_floor() -> None:
    """A downgrade below a known hole does not go unseen."""
    versions = locked_versions()
    check(
        f"{package}: {versions.get(package)} is locked, the floor is {floor}"
        for package, (floor, _) in FLOORS.items()
        if ordered(versions.get(package, "0")) < ordered(floor)
    )


def test_a_wheel_asks_for_no_version_below_a_floor() -> None:
    """Whoever installs without the locks is safe, too."""
    for project in (".", "clients/python", "packaging/load"):
        text = (ROOT / project / "pyproject.toml").read_text("utf-8")
        about = tomllib.loads(text)["project"]
        optional = about.get("optional-dependencies", {}).values()
        for requirement in chain(about["dependencies"], *optional):
            least = re.match(r"([a-z0-9-]+)(?:\[\w+\])?[>=]=([0-9.]+)", requirement)
            if least and least[1] in FLOORS:
                assert ordered(least[2]) >= ordered(FLOORS[least[1]][0]), requirement


def test_a_floor_has_a_reason() -> None:
    """What goes wrong below it, in words; an advisory's number alone says nothing."""
    reason_in_words = re.compile(r"[a-z]{3,} [a-z]+ [a-z]+")
    check(p for p, (_, reason) in FLOORS.items() if not reason_in_words.search(reason))


def test_every_floor_of_the_page_is_read() -> None:
    """A row of another form would be checked by nobody."""
    assert {"uvicorn", "starlette", "redis", "pyspark"} <= FLOORS.keys()


def test_packages_that_must_not_be_there_are_not() -> None:
    """No form parser (a row of holes, no use for it) and no pandas."""
    assert "python-multipart" not in locked_versions()
    # But for what documents show, in a folder of its own.
    for name in LOCKS.keys() - {"locks/requirements-notebook.lock"}:
        assert not re.search(r"^pandas==", (ROOT / name).read_text("utf-8"), re.M)


def test_the_readme_says_how_much_is_installed() -> None:
    """By the files of the packages that `make run` installs."""
    locks = [(ROOT / name).read_text("utf-8") for name in list(LOCKS)[:2]]
    names = re.findall(r"^([a-z0-9.-]+)[=\[]", "\n".join(locks), re.MULTILINE)
    size = 0
    for name in {*names, "pip"}:
        # Some are for other systems.
        with suppress(PackageNotFoundError):
            here = distribution(name)
            for file in map(Path, map(here.locate_file, here.files or ())):
                size += file.stat().st_size if file.exists() else 0
    readme = (ROOT / "README.md").read_text("utf-8")
    told = re.findall(r"([0-9.]+) GB of disk", readme)
    assert [float(gigabytes) for gigabytes in told] == [pytest.approx(size / 1e9, 0.2)]
