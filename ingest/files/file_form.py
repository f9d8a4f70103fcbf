"""How a file is written: what its options say of delimiters, names and numbers. Pure.

The same options are those of trades (``ingest``, ``replay``, ``run --tape``) and of
instrument lists (``instruments load``).
"""

import codecs
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class FrozenOptions(BaseModel):
    """Options that do not change, and take nothing unknown; docstrings are their help.

    A command makes its own options of them (``cli/commands/setting_options.py``).
    ``ValidationError`` names each one out of bounds.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        defer_build=True,
    )


WORDS = {"tab": "\t", "\\t": "\t", "space": " "}
"""Characters that are hard to type, by what is typed for them."""

_NAME = re.compile(r"[^=,\s](?:[^=,]{0,98}[^=,\s])?")


def read_by(parse: Callable[[str], object]) -> BeforeValidator:
    """Return what reads an option's text; what is no text stays as it is."""
    return BeforeValidator(
        lambda value: parse(value) if isinstance(value, str) else value
    )


def _parse_map(value: str) -> dict[str, str]:
    names: dict[str, str] = {}
    for part in value.split(","):
        field, is_pair, name = part.partition("=")
        field, name = field.strip(), name.strip()
        if not is_pair or not _NAME.fullmatch(field) or not _NAME.fullmatch(name):
            raise ValueError(f"{part.strip()!r}: must be like price=px")
        if field in names:
            raise ValueError(f"{field!r}: is there twice")
        names[field] = name
    return names


def _parse_delimiter(value: str) -> str:
    character = WORDS.get(value, value)
    if len(character) != 1 or character in '"\r\n' or character.isalnum():
        raise ValueError("must be one character, such as ; or |, or tab or space")
    return character


def _parse_thousands(value: str) -> str:
    character = WORDS.get(value, value)
    if character not in (",", ".", "'", " ", "_", ""):
        raise ValueError("must be one of , . ' _ or space")
    return character


def _parse_encoding(value: str) -> str:
    try:
        # What makes bytes of bytes (base64, zip) is no encoding of text.
        b" ".decode(value, "ignore")
        codecs.getincrementaldecoder(value)
        return codecs.lookup(value).name
    except (LookupError, ValueError):
        rule = "must be an encoding that Python has, such as cp949, utf-16 or latin-1"
        raise ValueError(rule) from None


def _parse_columns(value: str) -> str:
    names = [name for name in _split_columns(value) if name]
    if value and not names:
        raise ValueError("must name at least one column")
    if len(set(names)) < len(names):
        raise ValueError("every column needs a name of its own")
    return value


def _split_columns(text: str) -> list[str]:
    names = (name.strip() for name in text.split(","))
    return ["" if name == "_" else name for name in names]


class FileForm(FrozenOptions):
    """How a file is written. What is compressed is seen by itself."""

    map: Annotated[dict[str, str], read_by(_parse_map)] = Field(default_factory=dict)
    """What the fields are called in the input, as isin=symbol,price=px,time=ts; in
    JSON with points, as price=data.px. Other names stay.
    """

    delimiter: Annotated[str, read_by(_parse_delimiter)] = ","
    """What separates the values of CSV: one character, or tab, or space."""

    no_quotes: bool = False
    """Values of CSV have no quotes around them: a quote is a character like others."""

    encoding: Annotated[str, read_by(_parse_encoding)] = "utf-8"
    """How the text is encoded: cp949, utf-16, latin-1 or any other that Python has."""

    columns: Annotated[str, read_by(_parse_columns)] = ""
    """The names of the columns of CSV that has no header, with commas between them;
    _ is a column that is left out.
    """

    thousands: Annotated[str, read_by(_parse_thousands)] = ""
    """What stands between the thousands of a number, as the comma in "71,900"."""

    decimal_mark: Annotated[str, Field(pattern=r"^[.,]$")] = "."
    """What stands before the decimals of a number: a point or a comma."""

    @model_validator(mode="after")
    def _check_form(self) -> "FileForm":
        names = list(self.map.values())
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"map: {twice[0]!r} can be one field only")
        if self.thousands == self.decimal_mark:
            raise ValueError("thousands and decimal_mark: must differ")
        return self

    @property
    def column_names(self) -> list[str]:
        """The columns as ``columns`` names them; an empty name is left out."""
        return _split_columns(self.columns) if self.columns else []
