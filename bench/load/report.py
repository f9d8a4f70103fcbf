"""A result as JSON and back, as a page, and as lines for a terminal."""

from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from bench.load.page.render import render
from bench.load.results import VERSION, Result

_RESULT = TypeAdapter(Result)


class ReportError(Exception):
    """A file that is not a report this program can read; the text says why."""


def encode(result: Result) -> bytes:
    """Return the report as JSON, in one line."""
    # Series may be arrays; JSON knows lists.
    return orjson.dumps(result, default=list, option=orjson.OPT_APPEND_NEWLINE)


def decode(data: bytes) -> Result:
    """Return the result that ``encode`` wrote.

    Raises ReportError if it is none, or one of another version.
    """
    try:
        raw = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ReportError(f"not a report: {error}") from None
    if not isinstance(raw, dict) or "version" not in raw:
        raise ReportError("not a report: it has no version")
    if raw["version"] != VERSION:
        raise ReportError(
            f"version {raw['version']!r} of a report: this program reads {VERSION}"
        )
    try:
        return _RESULT.validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ReportError(
            f"not a report: {field} {first['input']!r}: {first['msg'].lower()}"
        ) from None


def read(path: Path) -> Result:
    """Return the result kept in a file; ReportError names the file."""
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from None
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from None


def write(result: Result, json_path: Path | None, page_path: Path | None) -> None:
    """Write the report as JSON and as a page, each where a path is given."""
    if json_path is not None:
        json_path.write_bytes(encode(result))
    if page_path is not None:
        page_path.write_text(render(result), "utf-8")
