"""What the other engines are built with."""

import re

import pytest

from bench.peers.maven import HERE, what_is_missing
from tests.paths import ROOT


def test_without_maven_one_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is measured, and no stack trace is shown."""
    monkeypatch.setenv("PATH", "")
    assert "apt install maven" in (what_is_missing() or "")


def test_the_page_names_the_versions_that_are_built() -> None:
    text = (HERE / "pom.xml").read_text("utf-8")
    page = (ROOT / "docs" / "alternatives.md").read_text("utf-8")
    for name in ("kafka-streams", "flink", "flink-kafka", "jedis"):
        [version] = re.findall(rf"<{name}.version>(.*)</{name}.version>", text)
        assert f" {version}" in page
