"""One option for how a source is written: ``--form delimiter=tab``. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from ingest.sources.trade_lines import LineOptions

FORM = tuple(
    name
    for name in LineOptions.model_fields
    if name not in ("map", "updates", "venue", "instruments_file", "stamp")
)
"""The fields of ``LineOptions`` that are given by ``--form``, of files all of them."""


class BadForm(ValueError):
    """A part of a form is none; the message says what it must be."""


def read_form(texts: Iterable[str], names: Collection[str]) -> dict[str, Any]:
    """Return fields by their names, of texts such as ``time-unit=ms``. Raises BadForm.

    ``names`` are those that there are. A field of several values may come again.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, is_pair, value = text.partition("=")
        field = name.strip().replace("-", "_")
        if field not in names or not (is_pair or field == "no_quotes"):
            shown = ", ".join(one.replace("_", "-") for one in names)
            raise BadForm(f"form {text!r}: must be NAME=VALUE, NAME one of {shown}")
        if field == "leave_out":
            values.setdefault(field, []).append(value)
        elif field in values:
            raise BadForm(f"form {text!r}: {name.strip()} is there twice")
        else:
            values[field] = value if is_pair else True
    return values


def spell_form(options: BaseModel) -> list[str]:
    """Return what ``--form`` has to say of options that are not as by default."""
    words = {"\t": "tab", " ": "space"}
    texts: list[str] = []
    for name in FORM:
        value = getattr(options, name)
        default = (
            type(options).model_fields[name].get_default(call_default_factory=True)
        )
        if value == default:
            continue
        shown = name.replace("_", "-")
        if isinstance(value, Mapping):
            value = ",".join(f"{key}={one}" for key, one in value.items())
        elif isinstance(value, frozenset):
            value = ",".join(sorted(value))
        if value is True:
            texts.append(shown)
        else:
            each = value if isinstance(value, tuple) else [value]
            texts += [f"{shown}={words.get(one, one)}" for one in each]
    return texts
