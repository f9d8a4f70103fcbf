"""Tokens made with a server's own secret: JSON Web Tokens, by HS256."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from typing import Any

LASTS_S = 600


def signed_token(secret: bytes, lasts_s: float | None = LASTS_S, **tick: Any) -> str:
    """Return a token of these rights; without ``exp`` if ``lasts_s`` is None."""
    claims = {} if lasts_s is None else {"exp": int(time.time() + lasts_s)}
    parts = ({"alg": "HS256", "typ": "JWT"}, {**claims, "sub": "kit", "tick": tick})
    text = ".".join(_text(json.dumps(part).encode()) for part in parts)
    return f"{text}.{_text(hmac.digest(secret, text.encode(), 'sha256'))}"


def full_token(secret: bytes) -> str:
    """Return one that allows all there is."""
    return signed_token(secret, trades=True)


def _text(part: bytes) -> str:
    return urlsafe_b64encode(part).rstrip(b"=").decode()
