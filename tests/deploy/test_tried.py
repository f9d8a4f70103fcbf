"""When images, services and pods are tried again."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.deploy.tried import MADE_OF, changed, digests, note_of, sentence
from tests.paths import ROOT
from tests.tidy import check


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what they depend on."""
    for name in digests():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_pattern_has_a_file() -> None:
    """What is moved is not forgotten."""
    check(p for p in MADE_OF if not any(path.is_file() for path in ROOT.glob(p)))


def test_every_test_of_containers_is_among_them() -> None:
    """A changed test runs."""
    marked = re.compile(r"\bmark\.container\b")
    check(
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        if (name := path.relative_to(ROOT).as_posix()) not in digests()
        and path != Path(__file__)
        and marked.search(path.read_text("utf-8"))
    )


def test_what_an_image_copies_by_name_is_among_them() -> None:
    """The locks; the product itself is tried by every other test."""
    text = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
    copied = re.findall(r"^COPY (\S+\.lock) ", text, re.MULTILINE)
    assert len(copied) >= 3
    check({*copied} - digests().keys())


def test_nothing_is_tried_while_nothing_has_changed(project: Path) -> None:
    """Whatever the folder is called."""
    paths = changed(note_of(digests()), digests(project))
    assert paths == []
    assert sentence(paths).startswith("left out: images, services and pods;")


def test_a_file_that_changes_comes_or_goes_is_named(project: Path) -> None:
    """In the line that says what is done."""
    note = note_of(digests(project))
    (project / "locks/requirements.lock").write_text("other")
    (project / "deploy" / "caddy" / "more").write_text("")
    (project / "deploy" / "compose.yaml").unlink()
    paths = changed(note, digests(project))
    assert paths == [
        "deploy/caddy/more",
        "deploy/compose.yaml",
        "locks/requirements.lock",
    ]
    assert sentence(paths).endswith(f"since they were tried: {', '.join(paths)}")


def test_without_a_note_everything_is_tried() -> None:
    """And not each file is named."""
    paths = changed("", digests())
    assert len(paths) > 20
    assert sentence(paths).endswith(f" and {len(paths) - 4} more")


def test_two_notes_that_were_merged_are_none() -> None:
    """Each side tried its own files, and nobody tried both."""
    note = json.loads(note_of(digests()))
    note["all"] = "of one side"
    assert changed(json.dumps(note), digests()) == ["tried.json"]
