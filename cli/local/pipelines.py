"""Which pipelines run on this machine, as the runs themselves have noted.

A run leaves a note in its folder: its process, its page, and the settings that say
where its trade log and its stream are. A note outlives a killed run, so it counts for
as long as the process does.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
import psutil

from cli.local.settings import StateSettings
from ingest.settings import ProcessSettings, TopicSettings, variable_of

T = TypeVar("T", bound=TopicSettings)

_NOTE = "pipeline.json"

IDENTITY = tuple(TopicSettings.model_fields.keys() - ProcessSettings.model_fields)
"""The settings that say which pipeline it is."""


class NotOne(ValueError):
    """Several pipelines run, and it is not said which one is meant."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A running pipeline: its pages and the settings of whoever takes part in it."""

    page: str
    settings: Mapping[str, str]
    operators: str = ""

    def is_meant(self, said: Mapping[str, object]) -> bool:
        """Tell whether all that somebody has said of a pipeline is true of this one."""
        fields = TopicSettings.model_fields
        return all(
            self.settings.get(name, str(fields[name].default)) == str(value)
            for name, value in said.items()
        )

    def __str__(self) -> str:
        return f"{self.page} ({self.settings['redis_url']})"


def leave_note(
    folder: Path,
    process: int,
    page: str,
    variables: Mapping[str, str],
    operators: str = "",
) -> None:
    """Note in a run's folder what its parts are told, and where its pages are."""
    told = {name: variables.get(variable_of(TopicSettings, name)) for name in IDENTITY}
    settings = {name: text for name, text in told.items() if text is not None}
    pages = {"page": page, "operators": operators}
    note = {"process": process, **pages, "settings": settings}
    (folder / _NOTE).write_bytes(orjson.dumps(note))


def remove_note(folder: Path) -> None:
    """Take back the note of a run that ends."""
    (folder / _NOTE).unlink(missing_ok=True)


def running_pipelines(state_dir: Path) -> Sequence[Pipeline]:
    """Return the pipelines that run with their files in a folder, by their pages."""
    found = []
    for path in state_dir.glob(f"run-*/{_NOTE}"):
        with suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError):
            note = orjson.loads(path.read_bytes())
            if psutil.pid_exists(note["process"]):
                operators = note.get("operators", "")
                found.append(Pipeline(note["page"], note["settings"], operators))
    return sorted(found, key=lambda pipeline: pipeline.page)


def choose(
    pipelines: Sequence[Pipeline], said: Mapping[str, object]
) -> Pipeline | None:
    """Return the pipeline that is meant, None if there is none. Raises NotOne.

    ``said`` are settings that somebody gave. Who has named a server needs no pipeline.
    """
    if "redis_url" in said:
        return None
    meant = [pipeline for pipeline in pipelines if pipeline.is_meant(said)]
    if len(meant) > 1:
        ways = " or ".join(
            f"--redis-url {pipeline.settings['redis_url']} ({pipeline.page})"
            for pipeline in meant
        )
        raise NotOne(f"{len(meant)} pipelines run here, choose one: {ways}")
    return meant[0] if meant else None


def join_pipeline(
    kind: type[T], given: Mapping[str, Any], pages: Collection[str] | None = None
) -> tuple[T, Pipeline | None]:
    """Build settings from the environment, what was given, and what runs here.

    Where neither options nor variables name a server, and a pipeline runs on this
    machine, what they leave open is as in that pipeline; it is returned, too. With
    ``pages`` only pipelines with one of these pages count. Raises NotOne, and
    pydantic's ValidationError.
    """
    build: Callable[..., T] = kind
    settings = build(**given)
    said = {
        name: getattr(settings, name)
        for name in IDENTITY
        if name in settings.model_fields_set
    }
    found = running_pipelines(StateSettings().state_dir)
    if pages is not None:
        found = [pipeline for pipeline in found if pipeline.page in pages]
    pipeline = choose(found, said)
    if pipeline is None:
        return settings, None
    open_ones = {k: v for k, v in pipeline.settings.items() if k not in said}
    return build(**given, **open_ones), pipeline
