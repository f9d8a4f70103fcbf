"""Which server of Redis may be named: one that stands alone."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_SCHEMES = ("redis", "rediss", "unix")
_DATABASE = re.compile(r"/?[0-9]{0,5}", re.ASCII)
_INSTEAD = "give the address of one server, redis://host:port/0"
_MODES = {
    "cluster": "the keys of one step would lie on several servers",
    "sentinel": "it knows where the primary is, it holds no data",
}


def check_redis_url(url: str) -> str:
    """Return an address if a client can be made of it. Raises ValueError."""
    scheme = url.partition("://")[0].lower()
    for mode in _MODES:
        if mode in scheme:
            raise ValueError(f"Redis {mode.title()} is not supported; {_INSTEAD}")
    if scheme not in _SCHEMES:
        raise ValueError(f"must begin with redis://, rediss:// or unix://; {_INSTEAD}")
    if scheme != "unix" and not _DATABASE.fullmatch(path := urlsplit(url).path):
        raise ValueError(
            f"the database {path[1:]!r} must be a number, as in {_INSTEAD}"
        )
    # The client loads slowly, and most settings are the default.
    from redis import ConnectionPool

    try:
        ConnectionPool.from_url(url).make_connection()
    except TypeError as error:
        option = str(error).rpartition(" argument ")[2]
        raise ValueError(f"the client has no option {option}") from None
    return url


def why_unusable(server: Mapping[str, Any]) -> str | None:
    """Return why a server cannot be used, by what it says of itself; None: it can."""
    # Redis and Valkey have different names for it.
    mode = server.get("redis_mode") or server.get("server_mode", "")
    if (reason := _MODES.get(mode)) is None:
        return None
    return f"this server runs as a Redis {mode.title()}: {reason}; {_INSTEAD}"
