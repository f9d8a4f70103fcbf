"""What every command begins and ends with: its settings, and one clear sentence."""

import sys
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from pydantic import ValidationError
from pydantic_settings import BaseSettings

S = TypeVar("S", bound=BaseSettings)

RedisUrl = Annotated[
    str | None, typer.Option(help="The Redis or Valkey server. [env: REDIS_URL]")
]


def read_settings(kind: type[S], **given: Any) -> S:
    """Build settings from the environment and what was given; end on a bad one."""
    try:
        return kind(**{k: v for k, v in given.items() if v is not None})
    except ValidationError as error:
        wrong = [
            f"{'.'.join(str(part) for part in e['loc'])} {e['input']}: {e['msg']}"
            for e in error.errors()
        ]
        fail("; ".join(wrong), code=2)


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command with one sentence on stderr."""
    sys.stderr.write(f"tickthrottle: {message}\n")
    raise typer.Exit(code)
