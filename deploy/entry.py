"""What every command begins and ends with: its settings, and one clear sentence."""

import sys
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from ingest.log import LogKind

S = TypeVar("S", bound=BaseSettings)


LogOption = Annotated[
    LogKind | None,
    typer.Option(
        "--log", help="Where trades are logged. [env: TICKTHROTTLE_LOG; default: redis]"
    ),
]
KafkaServers = Annotated[
    str | None,
    typer.Option(
        help="Addresses of some Kafka brokers, with commas between them. "
        "[env: TICKTHROTTLE_KAFKA_SERVERS; default: 127.0.0.1:9092]"
    ),
]
KafkaTopicName = Annotated[
    str | None,
    typer.Option(
        "--kafka-topic",
        help="The topic that is the log. [env: TICKTHROTTLE_KAFKA_TOPIC; "
        "default: trades]",
    ),
]

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
