"""How a setting is shown: never what only its owner may know. Pure."""

import re
from urllib.parse import urlsplit

from pydantic import SecretStr

MASK = "***"

_SECRET = re.compile("password|secret|token|credential|access.?key", re.IGNORECASE)


def shown(name: str, value: object) -> str:
    """Return the value of a setting as text, without what only its owner may know."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if name.endswith("url"):
        # It may hold a password.
        return server_address(str(value))
    if isinstance(value, dict):
        return ", ".join(
            f"{option}={MASK if _SECRET.search(option) else text}"
            for option, text in value.items()
        )
    if isinstance(value, frozenset):
        return ",".join(sorted(map(str, value)))
    return "" if value is None else str(value)


def server_address(url: str) -> str:
    """Return a server's address without the password its URL may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
