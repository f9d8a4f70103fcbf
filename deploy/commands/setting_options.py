"""Makes a command's options of a settings class, so that each is stated once.

An option has the name, type, default, variable and docstring of its field. The class
itself checks the values: a bad option and a bad variable are refused alike.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from deploy.commands.entry import read_settings
from ingest.settings import home_folder, variables_of
from throttle.settings import ThrottleSettings

# Characters that a shell or a reader would lose, as they may be given.
_WORDS: dict[Any, str] = {"\t": "tab", " ": "space"}
R = TypeVar("R")
_KEYWORD = Parameter.KEYWORD_ONLY


def options_of(
    kind: type[BaseModel], *names: str, **flags: str
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options of ``kind`` in place of its parameter of that type.

    ``names`` are the fields that become options, in their order; ``flags`` says which
    option has a name of its own (``spark_master="--master"``). The class needs
    ``use_attribute_docstrings``. The command is called with an instance, made of what
    was given; a bad value ends it with one sentence and exit code 2.
    """
    fields = tuple(dict.fromkeys((*names, *flags)))
    options = [_option(kind, name, flags.get(name)) for name in fields]

    def replace_settings(command: Callable[..., R]) -> Callable[..., R]:
        own = signature(command, eval_str=True).parameters.values()
        [target] = [p.name for p in own if p.annotation is kind]

        @wraps(command)
        def call(**values: Any) -> R:
            chosen = {name: values.pop(name) for name in fields}
            return command(**{target: read_settings(kind, **chosen)}, **values)

        # Typer reads the signature, and must not look through to the command's own.
        del call.__wrapped__
        merged: list[Parameter] = []
        for parameter in own:
            is_target = parameter.name == target
            merged += options if is_target else [parameter.replace(kind=_KEYWORD)]
        call.__signature__ = Signature(merged)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in merged}
        return call

    return replace_settings


def _option(kind: type[BaseModel], name: str, flag: str | None) -> Parameter:
    info = typer.Option(flag or "--" + name.replace("_", "-"), help=_help(kind, name))
    annotation: Any = Annotated[_type(kind.model_fields[name].annotation) | None, info]
    return Parameter(name, _KEYWORD, default=None, annotation=annotation)


def _type(annotation: Any) -> Any:
    """Return what Typer makes of an option's text: None and bounds are not its own."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        [kind] = [a for a in get_args(annotation) if a is not NoneType]
        return _type(kind)
    if get_origin(annotation) in (tuple, list, frozenset):
        return GenericAlias(list, _type(get_args(annotation)[0]))
    if isinstance(annotation, type) and annotation not in (bool, int, float, Path):
        return str
    return str if get_origin(annotation) is dict else annotation


def _help(kind: type[BaseModel], name: str) -> str:
    field = kind.model_fields[name]
    words = " ".join((field.description or "").replace("``", "`").split())
    default = field.get_default(call_default_factory=True)
    notes = []
    if issubclass(kind, BaseSettings) and (variable := variables_of(kind).get(name)):
        notes.append(f"env: {variable}")
    if default not in (None, "", False, (), frozenset(), {}):
        notes.append(f"default: {_text(default)}")
    return f"{words} [{'; '.join(notes)}]" if notes else words


def _text(default: Any) -> str:
    if isinstance(default, Path) and default.is_relative_to(home_folder()):
        return f"~/{default.relative_to(home_folder())}"
    if isinstance(default, float):
        return f"{default:g}"
    if isinstance(default, tuple | frozenset):
        return ", ".join(_text(value) for value in default)
    return str(default)


def spell_options(options: BaseModel, **flags: str) -> list[str]:
    """Return the arguments that give the options that are not as by default.

    ``flags`` are as for ``options_of``.
    """
    spelled: list[str] = []
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        if value == field.get_default(call_default_factory=True):
            continue
        flag = flags.get(name) or "--" + name.replace("_", "-")
        if value is True:
            spelled.append(flag)
        elif isinstance(value, Mapping):
            spelled += [flag, ",".join(f"{key}={text}" for key, text in value.items())]
        elif isinstance(value, tuple | list | frozenset):
            texts = [str(item) for item in value]
            # A set has an order for the eye only.
            texts = sorted(texts) if isinstance(value, frozenset) else texts
            spelled += [word for text in texts for word in (flag, text)]
        else:
            spelled += [flag, _WORDS.get(value, str(value))]
    return spelled


AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")
]
WITH_LOG = options_of(
    ThrottleSettings, "job", "trade_log", "kafka_servers", "kafka_topic", "redis_url"
)
"""For a command that looks at a job and its log."""
