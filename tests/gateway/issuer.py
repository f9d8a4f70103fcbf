"""Issues tokens as an identity provider would."""

import time
from typing import Any

import jwt

SECRET = "a secret of the tests, thirty-two bytes or more"


def make_token(
    within_s: float = 60, key: Any = SECRET, algorithm: str = "HS256", **claims: Any
) -> str:
    """Return a token that is good for so long; claims may replace ``exp``."""
    stated: dict[str, Any] = {"exp": int(time.time() + within_s), **claims}
    stated = {name: value for name, value in stated.items() if value is not None}
    return jwt.encode(stated, key, algorithm=algorithm)
