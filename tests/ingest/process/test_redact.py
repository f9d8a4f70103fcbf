"""Settings are shown, secrets are not."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from ingest.process.redact import shown


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("redis_url", "redis://me:secret@host:6379/0", "redis://host:6379/0"),
        ("key", SecretStr("secret"), "***"),
        ("key", SecretStr(""), ""),
        (
            "spark_conf",
            {"a.password": "x", "a.cores": "2"},
            "a.password=***, a.cores=2",
        ),
        ("allowed_origins", frozenset({"b", "a"}), "a,b"),
        ("other_gateways", "http://a:1,http://me:secret@host:1", "***"),
        ("token_key_file", Path("/run/key"), "/run/key"),
        ("token_issuer", None, ""),
        ("port", 8_000, "8000"),
    ],
)
def test_a_setting_is_shown(name: str, value: object, expected: str) -> None:
    """What only its owner may know is not."""
    assert shown(name, value) == expected
