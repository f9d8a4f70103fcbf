"""Keys that an exchange asks for: from the environment or from files, never shown."""

from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError, create_model
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.adapters.adapter import Adapter, BadChoice
from ingest.process.redact import problems_of

_MAX_KEY_BYTES = 8_192


class FeedKeys(BaseSettings):
    """What the environment says of an adapter's keys.

    A key is in the variable ``TICKTHROTTLE_<FEED>_<KEY>``, or in the file that
    ``..._FILE`` names. No option takes one: everybody can read a command line.
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_",
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
    )


def read_keys(kind: type[Adapter]) -> dict[str, str]:
    """Return an adapter's keys by name. Raises BadChoice for one that is not there."""
    fields: dict[str, Any] = {}
    for secret in kind.secrets:
        field = _field(kind, secret)
        fields[field] = (SecretStr | None, None)
        fields[f"{field}_file"] = (Path | None, None)
    model = create_model("Keys", __base__=FeedKeys, **fields)
    try:
        values = model()
    except ValidationError as error:
        raise BadChoice(f"feed {kind.name}: {problems_of(error)}") from None
    return {secret: _read(kind, secret, values) for secret in kind.secrets}


def _read(kind: type[Adapter], secret: str, values: FeedKeys) -> str:
    field = _field(kind, secret)
    variable = f"TICKTHROTTLE_{field.upper()}"
    given, file = getattr(values, field), getattr(values, f"{field}_file")
    text: str = given.get_secret_value() if given is not None else ""
    if file is not None:
        try:
            with file.open(encoding="utf-8") as lines:
                text = lines.read(_MAX_KEY_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "must be UTF-8"
            words = f"feed {kind.name}: {variable}_FILE {file}: {why}"
            raise BadChoice(words) from None
    if not text:
        raise BadChoice(
            f"feed {kind.name}: needs a key: set {variable}, or {variable}_FILE to a "
            "file that holds it"
        )
    return text


def _field(kind: type[Adapter], secret: str) -> str:
    return f"{kind.name}_{secret}".replace("-", "_")
