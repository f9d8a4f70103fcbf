"""What code and settings say of themselves, as text for people. Pure."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType

from pydantic_settings import BaseSettings

from ingest.process.redact import shown
from ingest.redis_keys import AnalyticsKeys, Keys
from ingest.settings import variable_of


@dataclass(frozen=True, slots=True)
class Key:
    """A key or channel of Redis; ``kind`` is the first word of what it is."""

    name: str
    key: str
    holds: str

    @property
    def kind(self) -> str:
        """Return what it is: hash, stream, channel, string or a prefix."""
        return self.holds.replace(":", " ").replace(",", " ").split()[0].lower()


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force: its variable, its value and what it means."""

    name: str
    variable: str
    value: str
    means: str


@dataclass(frozen=True, slots=True)
class Part:
    """What there is, and what is said of it; ``name`` is of letters and underscores."""

    name: str
    title: str
    items: tuple[tuple[str, str], ...]


def summary(text: str | None) -> str:
    """Return the first paragraph of a docstring (``paragraph``)."""
    return paragraph(text, 0)


def paragraph(text: str | None, number: int) -> str:
    """Return a paragraph of a docstring on one line, without its marks."""
    chosen = inspect.cleandoc(text or "").split("\n\n")[number]
    return " ".join(chosen.replace("``", "").split()).removesuffix(" Pure.")


def keys_of(keys: Keys | AnalyticsKeys, job: str) -> Iterator[Key]:
    """Yield every key and channel of a namespace; those of one job are this job's."""
    for name, member in vars(type(keys)).items():
        if isinstance(member, property):
            if isinstance(key := getattr(keys, name), str):
                yield Key(name, key, summary(member.__doc__))
        elif isinstance(member, FunctionType) and not name.startswith("_"):
            # One of each job, market, product or instrument.
            of_what = list(inspect.signature(member).parameters)[1]
            place = job if of_what == "job" else f"<{of_what}>"
            yield Key(name, getattr(keys, name)(place), summary(member.__doc__))


def settings_part(
    what: str, settings: BaseSettings, *known: type[BaseSettings]
) -> Part:
    """Return the settings of a process, but for those that are told elsewhere."""
    others = {name for kind in known for name in kind.model_fields}
    items = tuple(
        (f"{setting.variable} = {setting.value or 'not set'}", setting.means)
        for setting in settings_of(settings)
        if setting.name not in others
    )
    return Part(f"{what}_settings", f"{what.capitalize()}: settings", items)


def settings_of(settings: BaseSettings) -> Iterator[Setting]:
    """Yield every setting with its value; secrets are masked."""
    kind = type(settings)
    for name, field in kind.model_fields.items():
        text = shown(name, getattr(settings, name))
        means = " ".join((field.description or "").replace("``", "").split())
        yield Setting(name, variable_of(kind, name), text, means)
