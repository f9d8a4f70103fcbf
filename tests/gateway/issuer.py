"""Issues tokens as an identity provider would."""

import hmac
import time
from base64 import urlsafe_b64encode
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


def sign(header: str, claims: str) -> str:
    """Return a token that holds this text, JSON or not, under a good signature."""
    signed = ".".join(
        urlsafe_b64encode(part.encode()).rstrip(b"=").decode()
        for part in (header, claims)
    )
    digest = hmac.digest(SECRET.encode(), signed.encode(), "sha256")
    return f"{signed}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"


_GOOD = '{"exp":2000000000}'

ODD_TOKENS = [
    *(
        sign(header, _GOOD)
        for header in (
            "[" * 40_000,
            "[" * 5_000,
            "[" * 5_000 + "]" * 5_000,
            '{"alg":' + "9" * 5_000 + "}",
            '{"alg":"HS256","b64":false}',
            '{"alg":"HS256","b64":false,"crit":["b64"]}',
            '{"alg":"HS256","crit":["' + "x" * 4_000 + '"]}',
            '{"alg":"HS256","crit":[{}]}',
            '{"alg":["HS256"]}',
            '{"alg":{}}',
            '{"alg":"HS256","kid":{}}',
            '{"alg":"\\ud800"}',
            '{"alg":"HS256","crit":["\\ud800"]}',
            "\x00",
            "null",
        )
    ),
    *(
        sign('{"alg":"HS256"}', claims)
        for claims in (
            *('{"exp":"2000000000"}', '{"exp":"soon"}', '{"exp":1e300}'),
            *('{"exp":NaN}', '{"exp":Infinity}', '{"exp":-Infinity}'),
            '{"exp":' + "9" * 400 + "}",
            '{"exp":' + "9" * 5_000 + "}",
            *('{"exp":[]}', '{"exp":{}}', '{"exp":null}'),
            *('{"exp":2000000000,"nbf":[]}', '{"exp":2000000000,"nbf":1e400}'),
            '{"exp":2000000000,"iat":{}}',
            '{"exp":2000000000,"sub":"\\ud800","tick":"\\udfff"}',
            '{"exp":2000000000,"tick":' + "[" * 2_000 + "]" * 2_000 + "}",
            "[" * 5_000,
            "\ufeff{}",
        )
    ),
    "." * 10_000,
    "a" * 60_000,
    "\ud800.\ud800.\ud800",
]
"""Tokens that nobody issues: most under a good signature, so that all of it is read."""
