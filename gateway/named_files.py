"""The files that settings name: secrets, and what Kafka's client is told. Each is read
once, at the start.

Functions raise ValueError with one sentence if a file cannot be read or used.
"""

from pathlib import Path

from gateway.admission.tokens import TokenReader
from gateway.settings import AccessSettings, GatewaySettings
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogUnusable

MIN_TOKEN_CHARS = 16
"""Length of the shortest token operators may show."""


def check_files(settings: GatewaySettings) -> None:
    """Read every file that the settings name, and keep nothing of them."""
    read_operators_token(settings)
    create_token_reader(settings)
    read_topic(settings)


def create_token_reader(settings: AccessSettings) -> TokenReader | None:
    """Read the key of the tokens; None if no tokens are asked for."""
    path = settings.token_key_file
    if path is None:
        return None
    key = _read_secret("token_key_file", path)
    try:
        who = settings.token_audience, settings.token_issuer
        return TokenReader(key, settings.token_algorithm, *who)
    except ValueError as error:
        raise ValueError(f"token_key_file {path}: {error}") from None


def read_operators_token(settings: GatewaySettings) -> str | None:
    """Read the operators' token; None if none is asked for."""
    path = settings.operators_token_file
    if path is None:
        return None
    token = _read_secret("operators_token_file", path)
    if len(token) < MIN_TOKEN_CHARS or not token.isascii():
        raise ValueError(
            f"operators_token_file {path}: a token has {MIN_TOKEN_CHARS} characters of "
            "ASCII or more"
        )
    return token


def _read_secret(setting: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{setting} {path}: {reason}") from None


def read_topic(settings: GatewaySettings) -> KafkaTopic | None:
    """Return the topic that is the log, with what ``kafka_config`` says; else None."""
    try:
        return settings.topic()
    except LogUnusable as error:
        raise ValueError(str(error)) from None
