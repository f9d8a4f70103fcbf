"""Which pipeline a command means when nobody says it."""

import os
from pathlib import Path

import psutil
import pytest

from cli.local.pipelines import (
    NotOne,
    join_pipeline,
    leave_note,
    running_pipelines,
)
from ingest.settings import IngestSettings


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKTHROTTLE_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("REDIS_URL", raising=False)


@pytest.fixture
def gone() -> int:
    number = max(psutil.pids()) + 1
    assert not psutil.pid_exists(number)
    return number


def note(folder: Path, port: int, process: int | None = None, **more: str) -> str:
    url = f"redis://127.0.0.1:{port + 20_000}/0"
    run = folder / f"run-{port}"
    run.mkdir()
    page = f"http://127.0.0.1:{port}/"
    variables = {"REDIS_URL": url, "HOME": "/", **more}
    leave_note(run, os.getpid() if process is None else process, page, variables)
    return url


def test_the_only_one_is_meant(tmp_path: Path) -> None:
    """Its server and its log, as its parts are told."""
    url = note(tmp_path, 8000, TICKTHROTTLE_NAMESPACE="mine")
    settings, pipeline = join_pipeline(IngestSettings, {"partitions": 2})
    assert (settings.redis_url, settings.namespace, settings.partitions) == (
        url,
        "mine",
        2,
    )
    assert str(pipeline) == f"http://127.0.0.1:8000/ ({url})"


def test_who_names_a_server_needs_no_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(tmp_path, 8000)
    elsewhere = "redis://elsewhere"
    settings, pipeline = join_pipeline(IngestSettings, {"redis_url": elsewhere})
    assert (settings.redis_url, pipeline) == (elsewhere, None)
    monkeypatch.setenv("REDIS_URL", elsewhere)
    settings, pipeline = join_pipeline(IngestSettings, {})
    assert (settings.redis_url, pipeline) == (elsewhere, None)


def test_a_pipeline_that_differs_from_what_was_said_is_not_meant(
    tmp_path: Path,
) -> None:
    """A feed into a topic has nothing to do with a run on Redis."""
    note(tmp_path, 8000)
    assert join_pipeline(IngestSettings, {"trade_log": "kafka"})[1] is None
    assert join_pipeline(IngestSettings, {"trade_log": "redis"})[1] is not None
    assert join_pipeline(IngestSettings, {"namespace": "mine"})[1] is None


def test_one_of_several_has_to_be_named(tmp_path: Path) -> None:
    """The sentence says how, in words that can be copied; a page names one, too."""
    urls = [note(tmp_path, port) for port in (8000, 8123)]
    with pytest.raises(NotOne) as raised:
        join_pipeline(IngestSettings, {})
    assert str(raised.value) == (
        f"2 pipelines run here, choose one: --redis-url {urls[0]} "
        f"(http://127.0.0.1:8000/) or --redis-url {urls[1]} (http://127.0.0.1:8123/)"
    )
    pages = {"http://127.0.0.1:8123/"}
    settings, _ = join_pipeline(IngestSettings, {}, pages)
    assert settings.redis_url == urls[1]


def test_what_a_killed_run_has_left_does_not_count(tmp_path: Path, gone: int) -> None:
    """Nor does a note that cannot be read."""
    note(tmp_path, 8000, process=gone)
    (tmp_path / "run-9" / "pipeline.json").parent.mkdir()
    (tmp_path / "run-9" / "pipeline.json").write_text("[1")
    assert running_pipelines(tmp_path) == []
    assert join_pipeline(IngestSettings, {})[1] is None


def test_where_nothing_runs_the_default_holds() -> None:
    settings, pipeline = join_pipeline(IngestSettings, {})
    assert (settings.redis_url, pipeline) == ("redis://127.0.0.1:6379", None)
