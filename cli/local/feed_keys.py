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
    names = {key: f"{kind.name}_{key}".replace("-", "_") for key in kind.secrets}
    fields: dict[str, Any] = {}
    for field in names.values():
        fields[field] = (SecretStr, SecretStr(""))
        fields[f"{field}_file"] = (Path | None, None)
    model = create_model("Keys", __base__=FeedKeys, **fields)
    try:
        values = model()
    except ValidationError as error:
        raise BadChoice(f"feed {kind.name}: {problems_of(error)}") from None
    return {key: _read(kind, field, values) for key, field in names.items()}


def _read(kind: type[Adapter], field: str, values: FeedKeys) -> str:
    variable = f"TICKTHROTTLE_{field.upper()}"
    text: str = getattr(values, field).get_secret_value()
    file = getattr(values, f"{field}_file")
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
