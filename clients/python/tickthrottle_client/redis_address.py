"""Which server of Redis may be named: one that stands alone, or the Sentinels' primary.

``redis+sentinel://host:26379,host2:26379/name/0`` means the primary that the Sentinels
at these addresses know as ``name``, whichever server that is at the moment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tickthrottle_client.server_url import split_url

_SCHEMES = ("redis", "rediss", "unix")
_DATABASE = re.compile(r"/?[0-9]{0,5}", re.ASCII)
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL = "+sentinel"
_SENTINEL_PORT = 26_379
_INSTEAD = "give the address of one server, redis://host:port/0"
_BY_SENTINEL = "redis+sentinel://host:26379,host2:26379/name/0"
_MODES = {
    "cluster": (
        "Redis Cluster: the keys of one step would lie on several servers; " + _INSTEAD
    ),
    "sentinel": (
        "Redis Sentinel: it knows where the primary is, it holds no data; to have it "
        f"say where that is, give {_BY_SENTINEL}"
    ),
}


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """Where Sentinels are, what they call the primary, and how to talk to each.

    ``primary_url`` has everything but the primary's place: scheme, user, database and
    options of the client. ``options`` are the client's for the Sentinels.
    """

    sentinels: tuple[tuple[str, int], ...]
    name: str
    primary_url: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, url: str) -> "SentinelAddress | None":
        """Take an address apart, None if it names a server. Raises ValueError."""
        scheme, _, rest = url.partition("://")
        kind = scheme.lower().removesuffix(_SENTINEL)
        if kind == scheme.lower():
            return None
        if kind not in ("redis", "rediss"):
            raise ValueError(f"Sentinels are asked by an address {_BY_SENTINEL}")
        parts = split_url(f"//{rest}")
        user, at, hosts = parts.netloc.rpartition("@")
        name, _, database = parts.path.removeprefix("/").partition("/")
        if not name:
            raise ValueError(
                f"must say what Sentinel calls the primary, as in {_BY_SENTINEL}"
            )
        _check_database(database)
        query = dict(parse_qsl(parts.query))
        # A user of their own; the certificates are the same.
        options = {
            option.removeprefix("sentinel_"): query.pop(option)
            for option in ("sentinel_username", "sentinel_password")
            if option in query
        }
        tls = {o: text for o, text in query.items() if o.startswith("ssl_")}
        primary = f"{kind}://{user}{at}primary/{database}?{urlencode(query)}"
        return cls(tuple(_hosts(hosts)), name, primary, {**tls, **options})

    @property
    def sentinel_url(self) -> str:
        """An address of no place, with the options for the Sentinels."""
        scheme = self.primary_url.partition("://")[0]
        return f"{scheme}://sentinel?{urlencode(self.options)}"


def _hosts(text: str) -> list[tuple[str, int]]:
    found = []
    for part in text.split(","):
        place = urlsplit(f"//{part}")
        if not place.hostname:
            raise ValueError(f"must name Sentinels, as in {_BY_SENTINEL}")
        found.append((place.hostname, place.port or _SENTINEL_PORT))
    return found


def check_redis_url(url: str) -> str:
    """Return an address if a client can be made of it. Raises ValueError."""
    scheme = url.partition("://")[0].lower()
    if "cluster" in scheme:
        raise ValueError(f"Redis Cluster is not supported; {_INSTEAD}")
    if (address := SentinelAddress.parse(url)) is not None:
        _check_options(address.primary_url)
        _check_options(address.sentinel_url)
        return url
    if scheme not in _SCHEMES:
        raise ValueError(f"must begin with redis://, rediss:// or unix://; {_INSTEAD}")
    path = split_url(url).path
    if scheme != "unix":
        _check_database(path.removeprefix("/"))
    _check_options(url)
    return url


def _check_database(text: str) -> None:
    if not _DATABASE.fullmatch(text):
        raise ValueError(f"the database must be a number: {_INSTEAD}")


def _check_options(url: str) -> None:
    # The client loads slowly, and most settings are the default.
    from redis import ConnectionPool, RedisError

    try:
        ConnectionPool.from_url(url).make_connection()
    except RedisError as error:
        raise ValueError(str(error)) from None
    except TypeError as error:
        option = str(error).rpartition(" argument ")[2]
        raise ValueError(f"the client has no option {option}") from None
    # Missing, they would be told as a server that is away.
    for option, value in parse_qsl(urlsplit(url).query):
        if option in _FILES and not Path(value).is_file():
            raise ValueError(f"{option} {value}: there is no such file")


def why_unusable(server: Mapping[str, Any]) -> str | None:
    """Return why a server cannot be used, by what it says of itself; None: it can."""
    # Redis and Valkey have different names for it.
    mode = server.get("redis_mode") or server.get("server_mode", "")
    reason = _MODES.get(mode)
    return None if reason is None else f"this server runs as a {reason}"
