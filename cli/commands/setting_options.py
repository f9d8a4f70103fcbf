"""Makes a command's options of a settings class, so that each is stated once.

An option has the name, type, default, variable and docstring of its field. The class
itself checks the values: a bad option and a bad variable are refused alike.
"""

from collections.abc import Callable, Collection
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from cli.commands.entry import fail, read_settings
from cli.commands.form_option import BadForm, read_form, spell_form
from ingest.settings import home_folder, variables_of
from ingest.sources.trade_lines import LineOptions
from throttle.settings import ThrottleSettings

_TEXTS: Any = list[str] | None
_FORM = "How it is written, see docs/feeding.md; may be given several times"
R = TypeVar("R")
_KEYWORD = Parameter.KEYWORD_ONLY


def options_of(
    kind: type[BaseModel], *names: str, form: Collection[str] = (), **flags: str
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command the options of ``kind`` in place of its parameter of that type.

    ``names`` are the fields that become options, in their order; ``flags`` says which
    option has a name of its own (``spark_master="--master"``). The fields in ``form``
    are given by one option, ``--form``. The class needs
    ``use_attribute_docstrings``. The command is called with an instance, made of what
    was given; a bad value ends it with one sentence and exit code 2.
    """
    fields = tuple(dict.fromkeys((*names, *flags)))
    options = [_option(kind, name, flags.get(name)) for name in fields]
    if form:
        shown = ", ".join(name.replace("_", "-") for name in form)
        info = typer.Option("--form", metavar="NAME=VALUE", help=f"{_FORM}: {shown}.")
        options.append(
            Parameter(
                "form", _KEYWORD, default=None, annotation=Annotated[_TEXTS, info]
            )
        )

    def replace_settings(command: Callable[..., R]) -> Callable[..., R]:
        own = signature(command, eval_str=True).parameters.values()
        [target] = [p.name for p in own if p.annotation is kind]

        @wraps(command)
        def call(**values: Any) -> R:
            chosen = {name: values.pop(name) for name in fields}
            if form:
                try:
                    chosen |= read_form(values.pop("form") or (), form)
                except BadForm as error:
                    fail(str(error), code=2)
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


def spell_lines(lines: LineOptions) -> list[str]:
    """Return the arguments that give the options that are not as by default."""
    spelled = []
    if lines.map:
        pairs = (f"{field}={name}" for field, name in lines.map.items())
        spelled += ["--map", ",".join(pairs)]
    spelled += [word for text in spell_form(lines) for word in ("--form", text)]
    if lines.updates is not None:
        spelled += ["--updates", str(lines.updates)]
    if lines.venue is not None:
        spelled += ["--venue", str(lines.venue)]
    if lines.instruments_file is not None:
        spelled += ["--instruments", str(lines.instruments_file)]
    if lines.stamp != "recorded":
        spelled += ["--stamp", lines.stamp]
    return spelled


AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")
]
WITH_JOB = options_of(ThrottleSettings, "job", "redis_url")
"""For a command that looks at a job and its log. Which log that is, is in variables."""
