"""The AsyncAPI document as a judge of messages: what it does not describe fails."""

from functools import cache
from typing import Any

import yaml
from jsonschema import Draft7Validator

from tests.paths import ROOT

DOCUMENT_PATH = ROOT / "docs" / "asyncapi.yaml"


@cache
def document() -> dict[str, Any]:
    """Return docs/asyncapi.yaml."""
    found: dict[str, Any] = yaml.safe_load(DOCUMENT_PATH.read_text("utf-8"))
    return found


@cache
def validator(message: str) -> Draft7Validator:
    """Return what checks a message of this name."""
    schema = document()["components"]["messages"][message]["payload"]
    # References lead from the document's root.
    return Draft7Validator({**schema, "components": document()["components"]})


def check_message(message: dict[str, Any]) -> None:
    """Raise AssertionError unless a message is one the document describes.

    Fields that it does not name are an error too, but for those of a trade.
    """
    name = message.get("type") or message.get("op")
    assert name in document()["components"]["messages"], f"not described: {message}"
    checks = validator(str(name))
    faults = [
        f"{error.json_path}: {error.message}" for error in checks.iter_errors(message)
    ]
    assert not faults, f"{faults}\nin {message}"
    unknown = message.keys() - checks.schema["properties"].keys()
    assert not unknown, f"fields not described: {unknown}\nin {message}"
    rows = message.get("data", [])
    isins = [row[0] if isinstance(row, list) else row["isin"] for row in rows]
    assert len(isins) == len(set(isins)), f"an instrument twice in {message}"
